#include "heed/ops/gated_sum.h"

// Highway, a library of SIMD vectors, compiles the kernels below once for each instruction set: its header
// <hwy/foreach_target.h> includes this file (HWY_TARGET_INCLUDE) again for each of them. At run time a kernel is called
// in the version for instruction_set(), the set that heed uses on this CPU. The code under HWY_ONCE is compiled only
// once.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "heed/ops/gated_sum_cpu.cpp"
#include <hwy/foreach_target.h>  // IWYU pragma: keep
#include <hwy/highway.h>

#include "heed/ops/gates-inl.h"
#include "heed/ops/simd-inl.h"

HWY_BEFORE_NAMESPACE();
namespace heed::HWY_NAMESPACE {

/// Computes y = sigmoid(a) x + sigmoid(b) z for n elements.
template <class T>
void add_gated(const T* HWY_RESTRICT a, const T* HWY_RESTRICT x, const T* HWY_RESTRICT b, const T* HWY_RESTRICT z,
               T* HWY_RESTRICT y, std::int64_t n) {
  for_each_vector<T>(n, [&](auto d, std::int64_t i, auto load, auto store) HWY_ATTR {
    const auto first = hn::Mul(sigmoid(d, load(d, a + i)), load(d, x + i));
    store(hn::MulAdd(sigmoid(d, load(d, b + i)), load(d, z + i), first), d, y + i);
  });
}

/// Computes the gradients of y = sigmoid(a) x for n elements: adds to da and dx. A null pointer is skipped.
template <class T>
void gated_gradients(const T* HWY_RESTRICT a, const T* HWY_RESTRICT x, const T* HWY_RESTRICT dy, T* da, T* dx,
                     std::int64_t n) {
  for_each_vector<T>(n, [&](auto d, std::int64_t i, auto load, auto store) HWY_ATTR {
    const auto gate = sigmoid(d, load(d, a + i)), g = hn::Mul(load(d, dy + i), gate);
    if (dx) store(hn::Add(load(d, dx + i), g), d, dx + i);
    if (da) store(hn::MulAdd(hn::Mul(g, load(d, x + i)), hn::Sub(hn::Set(d, T(1)), gate), load(d, da + i)), d, da + i);
  });
}

HEED_INSTANTIATE_SIMD(add_gated,
                      (const float* a, const float* x, const float* b, const float* z, float* y, std::int64_t n),
                      (const double* a, const double* x, const double* b, const double* z, double* y, std::int64_t n),
                      (a, x, b, z, y, n))
HEED_INSTANTIATE_SIMD(gated_gradients,
                      (const float* a, const float* x, const float* dy, float* da, float* dx, std::int64_t n),
                      (const double* a, const double* x, const double* dy, double* da, double* dx, std::int64_t n),
                      (a, x, dy, da, dx, n))

}  // namespace heed::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace heed {

HEED_EXPORT_SIMD(add_gated)
HEED_EXPORT_SIMD(gated_gradients)

template <class T>
void gated_sum_forward(CpuContext&, Tensor<T> a, Tensor<T> x, Tensor<T> b, Tensor<T> z, Tensor<T> y) {
  simd::add_gated(a.data(), static_cast<const T*>(x.data()), static_cast<const T*>(b.data()),
                  static_cast<const T*>(z.data()), y.data(), y.size());
}

template <class T>
void gated_sum_backward(CpuContext&, Tensor<T> a, Tensor<T> x, Tensor<T> dy, Tensor<T> da, Tensor<T> dx) {
  simd::gated_gradients(a.data(), static_cast<const T*>(x.data()), static_cast<const T*>(dy.data()), da.data(),
                        dx.data(), dy.size());
}

template void gated_sum_forward(CpuContext&, Tensor<float>, Tensor<float>, Tensor<float>, Tensor<float>, Tensor<float>);
template void gated_sum_forward(CpuContext&, Tensor<double>, Tensor<double>, Tensor<double>, Tensor<double>,
                                Tensor<double>);
template void gated_sum_backward(CpuContext&, Tensor<float>, Tensor<float>, Tensor<float>, Tensor<float>,
                                 Tensor<float>);
template void gated_sum_backward(CpuContext&, Tensor<double>, Tensor<double>, Tensor<double>, Tensor<double>,
                                 Tensor<double>);

}  // namespace heed
#endif  // HWY_ONCE
