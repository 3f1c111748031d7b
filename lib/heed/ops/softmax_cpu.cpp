#include "heed/ops/softmax.h"

// Highway, a library of SIMD vectors, compiles the kernels below once for each instruction set: its header
// <hwy/foreach_target.h> includes this file (HWY_TARGET_INCLUDE) again for each of them. At run time a kernel is called
// in the version for instruction_set(), the set that heed uses on this CPU. The code under HWY_ONCE is compiled only
// once.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "heed/ops/softmax_cpu.cpp"
#include <hwy/foreach_target.h>  // IWYU pragma: keep
#include <hwy/highway.h>

#include "heed/ops/rows-inl.h"

HWY_BEFORE_NAMESPACE();
namespace heed::HWY_NAMESPACE {

template <class T>
void softmax_rows(const T* x, T* y, std::int64_t rows, std::int64_t n) {
  for (std::int64_t r = 0; r < rows; ++r) {
    std::copy_n(x + r * n, n, y + r * n);
    softmax_row(y + r * n, n);
  }
}

template <class T>
void softmax_rows_backward(const T* y, const T* dy, T* dx, std::int64_t rows, std::int64_t n) {
  for (std::int64_t r = 0; r < rows; ++r) softmax_row_backward(y + r * n, dy + r * n, dx + r * n, n);
}

template <class T>
void log_softmax_rows(const T* x, T* y, std::int64_t rows, std::int64_t n) {
  for (std::int64_t r = 0; r < rows; ++r) {
    const T* from = x + r * n;  // this row of x may be the same memory as the row of y
    T* to = y + r * n;
    const T largest = max_over(from, n);
    const T sum = sum_over<T>(n, [&](auto d, std::int64_t i) HWY_ATTR {
      return hn::Exp(d, hn::Sub(hn::LoadU(d, from + i), hn::Set(d, largest)));
    });
    const T shift = largest + std::log(sum);
    for_each_vector<T>(n, [&](auto d, std::int64_t i, auto load, auto store)
                              HWY_ATTR { store(hn::Sub(load(d, from + i), hn::Set(d, shift)), d, to + i); });
  }
}

template <class T>
void log_softmax_rows_backward(const T* y, const T* dy, T* dx, std::int64_t rows, std::int64_t n) {
  for (std::int64_t r = 0; r < rows; ++r) {
    const T* HWY_RESTRICT value = y + r * n;
    const T* HWY_RESTRICT from = dy + r * n;
    T* HWY_RESTRICT to = dx + r * n;
    const T sum = sum_over<T>(n, [&](auto d, std::int64_t i) HWY_ATTR { return hn::LoadU(d, from + i); });
    for_each_vector<T>(n, [&](auto d, std::int64_t i, auto load, auto store) HWY_ATTR {
      const auto share = hn::NegMulAdd(hn::Exp(d, load(d, value + i)), hn::Set(d, sum), load(d, from + i));
      store(hn::Add(load(d, to + i), share), d, to + i);
    });
  }
}

HEED_INSTANTIATE_SIMD(softmax_rows, (const float* x, float* y, std::int64_t r, std::int64_t n),
                      (const double* x, double* y, std::int64_t r, std::int64_t n), (x, y, r, n))
HEED_INSTANTIATE_SIMD(softmax_rows_backward,
                      (const float* y, const float* g, float* dx, std::int64_t r, std::int64_t n),
                      (const double* y, const double* g, double* dx, std::int64_t r, std::int64_t n), (y, g, dx, r, n))
HEED_INSTANTIATE_SIMD(log_softmax_rows, (const float* x, float* y, std::int64_t r, std::int64_t n),
                      (const double* x, double* y, std::int64_t r, std::int64_t n), (x, y, r, n))
HEED_INSTANTIATE_SIMD(log_softmax_rows_backward,
                      (const float* y, const float* g, float* dx, std::int64_t r, std::int64_t n),
                      (const double* y, const double* g, double* dx, std::int64_t r, std::int64_t n), (y, g, dx, r, n))

}  // namespace heed::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace heed {

HEED_EXPORT_SIMD(softmax_rows)
HEED_EXPORT_SIMD(softmax_rows_backward)
HEED_EXPORT_SIMD(log_softmax_rows)
HEED_EXPORT_SIMD(log_softmax_rows_backward)

template <class T>
void softmax_forward(CpuContext&, Tensor<T> x, Tensor<T> y) {
  simd::softmax_rows(x.data(), y.data(), x.rows(), x.columns());
}

template <class T>
void softmax_backward(CpuContext&, Tensor<T> y, Tensor<T> dy, Tensor<T> dx) {
  simd::softmax_rows_backward(y.data(), dy.data(), dx.data(), y.rows(), y.columns());
}

template <class T>
void log_softmax_forward(CpuContext&, Tensor<T> x, Tensor<T> y) {
  simd::log_softmax_rows(x.data(), y.data(), x.rows(), x.columns());
}

template <class T>
void log_softmax_backward(CpuContext&, Tensor<T> y, Tensor<T> dy, Tensor<T> dx) {
  simd::log_softmax_rows_backward(y.data(), dy.data(), dx.data(), y.rows(), y.columns());
}

template void softmax_forward(CpuContext&, Tensor<float>, Tensor<float>);
template void softmax_forward(CpuContext&, Tensor<double>, Tensor<double>);
template void softmax_backward(CpuContext&, Tensor<float>, Tensor<float>, Tensor<float>);
template void softmax_backward(CpuContext&, Tensor<double>, Tensor<double>, Tensor<double>);
template void log_softmax_forward(CpuContext&, Tensor<float>, Tensor<float>);
template void log_softmax_forward(CpuContext&, Tensor<double>, Tensor<double>);
template void log_softmax_backward(CpuContext&, Tensor<float>, Tensor<float>, Tensor<float>);
template void log_softmax_backward(CpuContext&, Tensor<double>, Tensor<double>, Tensor<double>);

}  // namespace heed
#endif  // HWY_ONCE
