#include "highway_target.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "highway_target_cpu.cpp"
#include <hwy/foreach_target.h>  // IWYU pragma: keep
#include <hwy/highway.h>

#include "heed/ops/simd-inl.h"

HWY_BEFORE_NAMESPACE();
namespace heed::HWY_NAMESPACE {

std::int64_t target() {
  return HWY_TARGET;
}

}  // namespace heed::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace heed {

VectorTarget dispatched_target() {
  const std::int64_t target = HEED_DISPATCH(target)();
  return target == HWY_AVX3 ? VectorTarget::avx512 : target == HWY_AVX2 ? VectorTarget::avx2 : VectorTarget::baseline;
}

}  // namespace heed
#endif
