// What the SIMD kernels of the ops share. Included once for each instruction set, after <hwy/highway.h>.
//
// Kernels are templates over T (float or double): the double instance is what the gradient checks run, so the code
// that trains is the code that is checked.
#if defined(HEED_OPS_SIMD_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef HEED_OPS_SIMD_INL_H_
#undef HEED_OPS_SIMD_INL_H_
#else
#define HEED_OPS_SIMD_INL_H_
#endif

#include <hwy/contrib/math/math-inl.h>
#include <hwy/highway.h>

#include <cstdint>

#include "heed/ops/highway_targets.h"

HWY_BEFORE_NAMESPACE();
namespace heed::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

/// The number of elements of a full vector, as a constant. (gcc 14 does not accept Highway 1.2's MaxLanes() in the
/// constant expressions of a namespace.)
template <class T>
constexpr auto kLanes = static_cast<std::int64_t>(HWY_LANES(T));

/// Calls body(d, i, load, store) for i = 0, L, 2L, ... with full vectors and then element by element for the rest
/// (vectors of one lane), so that no memory past n is touched.
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

// HEED_INSTANTIATE_SIMD(kernel, (float parameters), (double parameters), (arguments)): the plain functions that the
// dispatcher needs, since it cannot take templates.
#ifndef HEED_INSTANTIATE_SIMD
#define HEED_INSTANTIATE_SIMD(kernel, float_parameters, double_parameters, arguments) \
  void kernel##_float float_parameters {                                              \
    kernel<float> arguments;                                                          \
  }                                                                                   \
  void kernel##_double double_parameters {                                            \
    kernel<double> arguments;                                                         \
  }

// HEED_DISPATCH(kernel)(...): calls the instance of an exported kernel for instruction_set().
#define HEED_DISPATCH(kernel) (heed::limit_highway_targets(), HWY_DYNAMIC_DISPATCH(kernel))

// HEED_EXPORT_SIMD(kernel): simd::kernel(...), overloaded for float and double, calls that instance.
#define HEED_EXPORT_SIMD(kernel)                                 \
  HWY_EXPORT(kernel##_float);                                    \
  HWY_EXPORT(kernel##_double);                                   \
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
