#include "heed/ops/layer_norm.h"

// Highway, a library of SIMD vectors, compiles the kernels below once for each instruction set: its header
// <hwy/foreach_target.h> includes this file (HWY_TARGET_INCLUDE) again for each of them. At run time a kernel is called
// in the version for instruction_set(), the set that heed uses on this CPU. The code under HWY_ONCE is compiled only
// once.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "heed/ops/layer_norm_cpu.cpp"
#include <hwy/foreach_target.h>  // IWYU pragma: keep
#include <hwy/highway.h>

#include "heed/ops/gemm/gemm_bfloat16.h"
#include "heed/ops/rows-inl.h"

HWY_BEFORE_NAMESPACE();
namespace heed::HWY_NAMESPACE {

/// Normalises `rows` rows of n elements (see row_norm_forward()). `rounded` and `statistics` may be null.
template <RowNorm kind, class T>
void normalise_rows_of(const T* x, const T* scale, const T* bias, T epsilon, T* y, Bfloat16* rounded, T* statistics,
                       std::int64_t rows, std::int64_t n) {
  for (std::int64_t r = 0; r < rows; ++r) {
    const T* row = x + r * n;
    const T sum = sum_over<T>(n, [&](auto d, std::int64_t i) HWY_ATTR { return summand<kind>(hn::LoadU(d, row + i)); });
    const RowStatistics<T> found = normalise_row<kind>(row, sum, scale, bias, epsilon, y + r * n, n);
    if (rounded) convert_to_bfloat16(y + r * n, n, rounded + r * n);
    if (!statistics) continue;
    statistics[2 * r] = found.mean;
    statistics[2 * r + 1] = found.inverse_deviation;
  }
}

template <class T>
void normalise_rows(const T* x, RowNorm kind, const T* scale, const T* bias, T epsilon, T* y, Bfloat16* rounded,
                    T* statistics, std::int64_t rows, std::int64_t n) {
  if (kind == RowNorm::rms)
    normalise_rows_of<RowNorm::rms>(x, scale, bias, epsilon, y, rounded, statistics, rows, n);
  else
    normalise_rows_of<RowNorm::layer>(x, scale, bias, epsilon, y, rounded, statistics, rows, n);
}

/// Adds the gradients of all rows to dx, dscale and dbias, each of which may be null.
template <RowNorm kind, class T>
void normalise_rows_backward_of(const T* x, const T* scale, const T* statistics, const T* dy, T* dx, T* dscale,
                                T* dbias, std::int64_t rows, std::int64_t n) {
  for (std::int64_t r = 0; r < rows; ++r) {
    const RowStatistics<T> row{statistics[2 * r], statistics[2 * r + 1]};
    T* HWY_RESTRICT to = dx ? dx + r * n : nullptr;
    normalise_row_backward<kind>(x + r * n, row, scale, dy + r * n, dscale, dbias, n,
                                 [&](auto d, std::int64_t i, auto g) HWY_ATTR {
                                   if (to) hn::StoreU(hn::Add(hn::LoadU(d, to + i), g), d, to + i);
                                 });
  }
}

template <class T>
void normalise_rows_backward(const T* x, RowNorm kind, const T* scale, const T* statistics, const T* dy, T* dx,
                             T* dscale, T* dbias, std::int64_t rows, std::int64_t n) {
  if (kind == RowNorm::rms)
    normalise_rows_backward_of<RowNorm::rms>(x, scale, statistics, dy, dx, dscale, dbias, rows, n);
  else
    normalise_rows_backward_of<RowNorm::layer>(x, scale, statistics, dy, dx, dscale, dbias, rows, n);
}

HEED_INSTANTIATE_SIMD(normalise_rows,
                      (const float* x, RowNorm k, const float* w, const float* b, float e, float* y, Bfloat16* o,
                       float* s, std::int64_t r, std::int64_t n),
                      (const double* x, RowNorm k, const double* w, const double* b, double e, double* y, Bfloat16* o,
                       double* s, std::int64_t r, std::int64_t n),
                      (x, k, w, b, e, y, o, s, r, n))
HEED_INSTANTIATE_SIMD(normalise_rows_backward,
                      (const float* x, RowNorm k, const float* w, const float* s, const float* g, float* dx, float* dw,
                       float* db, std::int64_t r, std::int64_t n),
                      (const double* x, RowNorm k, const double* w, const double* s, const double* g, double* dx,
                       double* dw, double* db, std::int64_t r, std::int64_t n),
                      (x, k, w, s, g, dx, dw, db, r, n))

}  // namespace heed::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace heed {

HEED_EXPORT_SIMD(normalise_rows)
HEED_EXPORT_SIMD(normalise_rows_backward)

template <class T>
void row_norm_forward(CpuContext&, RowNorm kind, Tensor<T> x, Tensor<T> scale, Tensor<T> bias, double epsilon,
                      MaybeRounded<T> y, Tensor<T> statistics) {
  simd::normalise_rows(x.data(), kind, scale.data(), bias.data(), static_cast<T>(epsilon), y.full.data(),
                       y.rounded.data(), statistics.data(), x.rows(), x.columns());
}

template <class T>
void row_norm_backward(CpuContext&, RowNorm kind, Tensor<T> x, Tensor<T> scale, Tensor<T> statistics, Tensor<T> dy,
                       Tensor<T> dx, Tensor<T> dscale, Tensor<T> dbias) {
  simd::normalise_rows_backward(x.data(), kind, scale.data(), statistics.data(), dy.data(), dx.data(), dscale.data(),
                                dbias.data(), x.rows(), x.columns());
}

template void row_norm_forward(CpuContext&, RowNorm, Tensor<float>, Tensor<float>, Tensor<float>, double,
                               MaybeRounded<float>, Tensor<float>);
template void row_norm_forward(CpuContext&, RowNorm, Tensor<double>, Tensor<double>, Tensor<double>, double,
                               MaybeRounded<double>, Tensor<double>);
template void row_norm_backward(CpuContext&, RowNorm, Tensor<float>, Tensor<float>, Tensor<float>, Tensor<float>,
                                Tensor<float>, Tensor<float>, Tensor<float>);
template void row_norm_backward(CpuContext&, RowNorm, Tensor<double>, Tensor<double>, Tensor<double>, Tensor<double>,
                                Tensor<double>, Tensor<double>, Tensor<double>);

}  // namespace heed
#endif  // HWY_ONCE
