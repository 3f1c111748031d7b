// The functions and macros that all SIMD kernels of the ops share.
//
// Kernels are written once with Highway, a library of portable SIMD vectors. Highway's <hwy/foreach_target.h> includes
// a kernel's file again for each instruction set (a "target"), so each kernel is compiled once for each of them; at run
// time the kernel for instruction_set() is called. This file is included once for each target, after <hwy/highway.h>.
//
// Kernels are templates over T (float or double). Training uses the float instance and the gradient checks use the
// double instance, so the checks run the same code as training.
#if defined(HEED_OPS_SIMD_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef HEED_OPS_SIMD_INL_H_
#undef HEED_OPS_SIMD_INL_H_
#else
#define HEED_OPS_SIMD_INL_H_
#endif

#include <hwy/contrib/math/math-inl.h>
#include <hwy/highway.h>

#include <cstdint>

#include "heed/ops/kernel_dispatch.h"

HWY_BEFORE_NAMESPACE();
namespace heed::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

/// The number of elements of T in a full vector, as a compile-time constant. (gcc 14 does not accept Highway 1.2's
/// MaxLanes() in a constant expression at namespace scope.)
template <class T>
constexpr auto kLanes = static_cast<std::int64_t>(HWY_LANES(T));

/// Applies `body` to all indices 0 .. n-1, a SIMD vector at a time: calls body(d, i, load, store) for i = 0, L, 2L,
/// ..., where L is the number of elements in a full vector, and then for each element that is left, with vectors of one
/// element. No memory after element n - 1 is read or written. `d` is Highway's tag of the vector type; load(d, p) and
/// store(v, d, p) load and store a vector of that type.
template <class T, class Body>
HWY_INLINE void for_each_vector(std::int64_t n, Body body) {
  const hn::ScalableTag<T> d;
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
  const auto load = [](auto tag, const T* p) HWY_ATTR { return hn::LoadU(tag, p); };
  const auto store = [](auto v, auto tag, T* p) HWY_ATTR { hn::StoreU(v, tag, p); };
  std::int64_t i = 0;
  for (; i + lanes <= n; i += lanes) body(d, i, load, store);
  const hn::CappedTag<T, 1> one;
  for (; i < n; ++i) body(one, i, load, store);
}

}  // namespace heed::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

// HEED_INSTANTIATE_SIMD(kernel, (parameters for float), (parameters for double), (arguments)) defines the functions
// kernel_float and kernel_double, which call the template `kernel`. HEED_DISPATCH takes functions, not templates.
#ifndef HEED_INSTANTIATE_SIMD
#define HEED_INSTANTIATE_SIMD(kernel, float_parameters, double_parameters, arguments) \
  void kernel##_float float_parameters {                                              \
    kernel<float> arguments;                                                          \
  }                                                                                   \
  void kernel##_double double_parameters {                                            \
    kernel<double> arguments;                                                         \
  }

// HEED_DISPATCH(kernel)(...) calls a kernel in the version that was compiled for instruction_set(). Highway's own
// dispatcher would need Highway's library, which measures the CPU's clock for 4 ms whenever a program loads it; of
// Highway, heed uses headers only.
#define HEED_DISPATCH(kernel)                                                                   \
  (*heed::kernel_for(heed::instruction_set(), HWY_CHOOSE_AVX3(kernel), HWY_CHOOSE_AVX2(kernel), \
                     &HWY_STATIC_DISPATCH(kernel)))

// HEED_EXPORT_SIMD(kernel) defines the function simd::kernel(first, ...). It dispatches to kernel_float or
// kernel_double by the type of `first`, in the version that was compiled for instruction_set().
#define HEED_EXPORT_SIMD(kernel)                                 \
  namespace simd {                                               \
  template <class T, class... Rest>                              \
  void kernel(T* first, Rest... rest) {                          \
    if constexpr (std::is_same_v<std::remove_const_t<T>, float>) \
      HEED_DISPATCH(kernel##_float)(first, rest...);             \
    else                                                         \
      HEED_DISPATCH(kernel##_double)(first, rest...);            \
  }                                                              \
  }
#endif

#endif  // HEED_OPS_SIMD_INL_H_
