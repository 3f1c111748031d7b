#include "heed/ops/residual_norm.h"

// Highway, a library of SIMD vectors, compiles the kernels below once for each instruction set: its header
// <hwy/foreach_target.h> includes this file (HWY_TARGET_INCLUDE) again for each of them. At run time a kernel is called
// in the version for instruction_set(), the set that heed uses on this CPU. The code under HWY_ONCE is compiled only
// once.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "heed/ops/residual_norm_cpu.cpp"
#include <hwy/foreach_target.h>  // IWYU pragma: keep
#include <hwy/highway.h>

#include "heed/ops/gemm/gemm_bfloat16.h"
#include "heed/ops/rows-inl.h"

HWY_BEFORE_NAMESPACE();
namespace heed::HWY_NAMESPACE {

/// Computes `sum` and `normed` for `rows` rows of n elements (see residual_norm_forward()). `rounded` and `statistics`
/// may be null.
template <RowNorm kind, class T>
void add_and_normalise_of(const T* residual, const T* branch, DropoutMask<T> mask, const T* scale, const T* bias,
                          T epsilon, T* sum, T* normed, Bfloat16* rounded, T* statistics, std::int64_t rows,
                          std::int64_t n) {
  for (std::int64_t r = 0; r < rows; ++r) {
    const T *a = residual + r * n, *b = branch + r * n;
    T* s = sum + r * n;  // the sum's row may be the same memory as row a, row b, or the normalised row
    const DropoutMask<T> row_mask = mask.from(r * n);
    const T total = sum_over<T>(n, [&](auto d, std::int64_t i) HWY_ATTR {
      const auto v = hn::Add(hn::LoadU(d, a + i), drop(d, hn::LoadU(d, b + i), row_mask, i));
      hn::StoreU(v, d, s + i);
      return summand<kind>(v);
    });
    const RowStatistics<T> found = normalise_row<kind>(s, total, scale, bias, epsilon, normed + r * n, n);
    if (rounded) convert_to_bfloat16(normed + r * n, n, rounded + r * n);
    if (!statistics) continue;
    statistics[2 * r] = found.mean;
    statistics[2 * r + 1] = found.inverse_deviation;
  }
}

template <class T>
void add_and_normalise(const T* residual, RowNorm kind, const T* branch, DropoutMask<T> mask, const T* scale,
                       const T* bias, T epsilon, T* sum, T* normed, Bfloat16* rounded, T* statistics, std::int64_t rows,
                       std::int64_t n) {
  if (kind == RowNorm::rms)
    add_and_normalise_of<RowNorm::rms>(residual, branch, mask, scale, bias, epsilon, sum, normed, rounded, statistics,
                                       rows, n);
  else
    add_and_normalise_of<RowNorm::layer>(residual, branch, mask, scale, bias, epsilon, sum, normed, rounded, statistics,
                                         rows, n);
}

/// Computes the gradients of residual_norm() for `rows` rows of n elements (see residual_norm_backward()). Null
/// gradients are skipped.
template <RowNorm kind, class T>
void add_and_normalise_backward_of(const T* sum, DropoutMask<T> mask, const T* scale, const T* statistics,
                                   const T* dsum, const T* dnormed, T* dresidual, bool adds_to_residual, T* dbranch,
                                   bool adds_to_branch, T* dscale, T* dbias, std::int64_t rows, std::int64_t n) {
  for (std::int64_t r = 0; r < rows; ++r) {
    const RowStatistics<T> row{statistics[2 * r], statistics[2 * r + 1]};
    const T* HWY_RESTRICT from = dsum ? dsum + r * n : nullptr;
    // The gradients of the residual and of the branch may be the same array, where both are the same variable.
    T* to_residual = dresidual ? dresidual + r * n : nullptr;
    T* to_branch = dbranch ? dbranch + r * n : nullptr;
    const DropoutMask<T> row_mask = mask.from(r * n);
    normalise_row_backward<kind>(
        sum + r * n, row, scale, dnormed + r * n, dscale, dbias, n, [&](auto d, std::int64_t i, auto g) HWY_ATTR {
          const auto t = from ? hn::Add(g, hn::LoadU(d, from + i)) : g;
          if (to_residual)
            hn::StoreU(adds_to_residual ? hn::Add(hn::LoadU(d, to_residual + i), t) : t, d, to_residual + i);
          if (!to_branch) return;
          const auto dropped = drop(d, t, row_mask, i);
          hn::StoreU(adds_to_branch ? hn::Add(hn::LoadU(d, to_branch + i), dropped) : dropped, d, to_branch + i);
        });
  }
}

template <class T>
void add_and_normalise_backward(const T* sum, RowNorm kind, DropoutMask<T> mask, const T* scale, const T* statistics,
                                const T* dsum, const T* dnormed, T* dresidual, bool adds_to_residual, T* dbranch,
                                bool adds_to_branch, T* dscale, T* dbias, std::int64_t rows, std::int64_t n) {
  if (kind == RowNorm::rms)
    add_and_normalise_backward_of<RowNorm::rms>(sum, mask, scale, statistics, dsum, dnormed, dresidual,
                                                adds_to_residual, dbranch, adds_to_branch, dscale, dbias, rows, n);
  else
    add_and_normalise_backward_of<RowNorm::layer>(sum, mask, scale, statistics, dsum, dnormed, dresidual,
                                                  adds_to_residual, dbranch, adds_to_branch, dscale, dbias, rows, n);
}

HEED_INSTANTIATE_SIMD(add_and_normalise,
                      (const float* a, RowNorm k, const float* b, DropoutMask<float> m, const float* w, const float* c,
                       float e, float* y, float* z, Bfloat16* o, float* s, std::int64_t r, std::int64_t n),
                      (const double* a, RowNorm k, const double* b, DropoutMask<double> m, const double* w,
                       const double* c, double e, double* y, double* z, Bfloat16* o, double* s, std::int64_t r,
                       std::int64_t n),
                      (a, k, b, m, w, c, e, y, z, o, s, r, n))
HEED_INSTANTIATE_SIMD(add_and_normalise_backward,
                      (const float* y, RowNorm k, DropoutMask<float> m, const float* w, const float* s, const float* dy,
                       const float* dz, float* da, bool fa, float* db, bool fb, float* dw, float* dc, std::int64_t r,
                       std::int64_t n),
                      (const double* y, RowNorm k, DropoutMask<double> m, const double* w, const double* s,
                       const double* dy, const double* dz, double* da, bool fa, double* db, bool fb, double* dw,
                       double* dc, std::int64_t r, std::int64_t n),
                      (y, k, m, w, s, dy, dz, da, fa, db, fb, dw, dc, r, n))

}  // namespace heed::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace heed {

HEED_EXPORT_SIMD(add_and_normalise)
HEED_EXPORT_SIMD(add_and_normalise_backward)

template <class T>
void residual_norm_forward(CpuContext&, RowNorm kind, Tensor<T> residual, MaybeRounded<T> branch, DropoutMask<T> mask,
                           Tensor<T> scale, Tensor<T> bias, double epsilon, Tensor<T> sum, MaybeRounded<T> normed,
                           Tensor<T> statistics) {
  simd::add_and_normalise(residual.data(), kind, branch.full.data(), mask, scale.data(), bias.data(),
                          static_cast<T>(epsilon), sum.data(), normed.full.data(), normed.rounded.data(),
                          statistics.data(), sum.rows(), sum.columns());
}

template <class T>
void residual_norm_backward(CpuContext&, RowNorm kind, Tensor<T> sum, DropoutMask<T> mask, Tensor<T> scale,
                            Tensor<T> statistics, Tensor<T> dsum, Tensor<T> dnormed, Tensor<T> dresidual,
                            bool adds_to_residual, MaybeRounded<T> dbranch, bool adds_to_branch, Tensor<T> dscale,
                            Tensor<T> dbias) {
  simd::add_and_normalise_backward(sum.data(), kind, mask, scale.data(), statistics.data(), dsum.data(), dnormed.data(),
                                   dresidual.data(), adds_to_residual, dbranch.full.data(), adds_to_branch,
                                   dscale.data(), dbias.data(), sum.rows(), sum.columns());
}

template void residual_norm_forward(CpuContext&, RowNorm, Tensor<float>, MaybeRounded<float>, DropoutMask<float>,
                                    Tensor<float>, Tensor<float>, double, Tensor<float>, MaybeRounded<float>,
                                    Tensor<float>);
template void residual_norm_forward(CpuContext&, RowNorm, Tensor<double>, MaybeRounded<double>, DropoutMask<double>,
                                    Tensor<double>, Tensor<double>, double, Tensor<double>, MaybeRounded<double>,
                                    Tensor<double>);
template void residual_norm_backward(CpuContext&, RowNorm, Tensor<float>, DropoutMask<float>, Tensor<float>,
                                     Tensor<float>, Tensor<float>, Tensor<float>, Tensor<float>, bool,
                                     MaybeRounded<float>, bool, Tensor<float>, Tensor<float>);
template void residual_norm_backward(CpuContext&, RowNorm, Tensor<double>, DropoutMask<double>, Tensor<double>,
                                     Tensor<double>, Tensor<double>, Tensor<double>, Tensor<double>, bool,
                                     MaybeRounded<double>, bool, Tensor<double>, Tensor<double>);

}  // namespace heed
#endif  // HWY_ONCE
