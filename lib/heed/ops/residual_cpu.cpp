#include "heed/ops/residual.h"

// Highway, a library of SIMD vectors, compiles the kernels below once for each instruction set: its header
// <hwy/foreach_target.h> includes this file (HWY_TARGET_INCLUDE) again for each of them. At run time a kernel is called
// in the version for instruction_set(), the set that heed uses on this CPU. The code under HWY_ONCE is compiled only
// once.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "heed/ops/residual_cpu.cpp"
#include <hwy/foreach_target.h>  // IWYU pragma: keep
#include <hwy/highway.h>

#include "heed/ops/rows-inl.h"

HWY_BEFORE_NAMESPACE();
namespace heed::HWY_NAMESPACE {

/// Computes y = residual + dropout(branch) for n elements.
template <class T>
void add_branch(const T* HWY_RESTRICT residual, const T* HWY_RESTRICT branch, DropoutMask<T> mask, T* HWY_RESTRICT y,
                std::int64_t n) {
  for_each_vector<T>(n, [&](auto d, std::int64_t i, auto load, auto store) HWY_ATTR {
    store(hn::Add(load(d, residual + i), drop(d, load(d, branch + i), mask, i)), d, y + i);
  });
}

HEED_INSTANTIATE_SIMD(add_branch, (const float* r, const float* b, DropoutMask<float> m, float* y, std::int64_t n),
                      (const double* r, const double* b, DropoutMask<double> m, double* y, std::int64_t n),
                      (r, b, m, y, n))

}  // namespace heed::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace heed {

HEED_EXPORT_SIMD(add_branch)

template <class T>
void residual_forward(CpuContext&, Tensor<T> residual, MaybeRounded<T> branch, DropoutMask<T> mask, Tensor<T> y) {
  simd::add_branch(residual.data(), static_cast<const T*>(branch.full.data()), mask, y.data(), y.size());
}

template void residual_forward(CpuContext&, Tensor<float>, MaybeRounded<float>, DropoutMask<float>, Tensor<float>);
template void residual_forward(CpuContext&, Tensor<double>, MaybeRounded<double>, DropoutMask<double>, Tensor<double>);

}  // namespace heed
#endif  // HWY_ONCE
