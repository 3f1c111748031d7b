#include "heed/ops/dropout.h"

// Highway, a library of SIMD vectors, compiles the kernels below once for each instruction set: its header
// <hwy/foreach_target.h> includes this file (HWY_TARGET_INCLUDE) again for each of them. At run time a kernel is called
// in the version for instruction_set(), the set that heed uses on this CPU. The code under HWY_ONCE is compiled only
// once.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "heed/ops/dropout_cpu.cpp"
#include <hwy/foreach_target.h>  // IWYU pragma: keep
#include <hwy/highway.h>

#include "heed/ops/rows-inl.h"

HWY_BEFORE_NAMESPACE();
namespace heed::HWY_NAMESPACE {

template <class T>
void apply_mask(const T* HWY_RESTRICT x, DropoutMask<T> mask, T* HWY_RESTRICT y, std::int64_t n) {
  for_each_vector<T>(n, [&](auto d, std::int64_t i, auto load, auto store)
                            HWY_ATTR { store(drop(d, load(d, x + i), mask, i), d, y + i); });
}

template <class T>
void add_masked(const T* HWY_RESTRICT x, DropoutMask<T> mask, T* HWY_RESTRICT to, std::int64_t n) {
  add_dropped(x, mask, to, n);
}

HEED_INSTANTIATE_SIMD(apply_mask, (const float* x, DropoutMask<float> m, float* y, std::int64_t n),
                      (const double* x, DropoutMask<double> m, double* y, std::int64_t n), (x, m, y, n))
HEED_INSTANTIATE_SIMD(add_masked, (const float* x, DropoutMask<float> m, float* y, std::int64_t n),
                      (const double* x, DropoutMask<double> m, double* y, std::int64_t n), (x, m, y, n))

}  // namespace heed::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace heed {

HEED_EXPORT_SIMD(apply_mask)
HEED_EXPORT_SIMD(add_masked)

template <class T>
void dropout_forward(CpuContext&, Tensor<T> x, DropoutMask<T> mask, Tensor<T> y) {
  simd::apply_mask(x.data(), mask, y.data(), x.size());
}

template <class T>
void dropout_backward(CpuContext&, Tensor<T> dy, DropoutMask<T> mask, Tensor<T> dx) {
  simd::add_masked(dy.data(), mask, dx.data(), dy.size());
}

template void dropout_forward(CpuContext&, Tensor<float>, DropoutMask<float>, Tensor<float>);
template void dropout_forward(CpuContext&, Tensor<double>, DropoutMask<double>, Tensor<double>);
template void dropout_backward(CpuContext&, Tensor<float>, DropoutMask<float>, Tensor<float>);
template void dropout_backward(CpuContext&, Tensor<double>, DropoutMask<double>, Tensor<double>);

}  // namespace heed
#endif  // HWY_ONCE
