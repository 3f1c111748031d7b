#include "heed/ops/highway_targets.h"

#include <hwy/targets.h>

#include "heed/base/instruction_set.h"
#include "heed/base/x86.h"

namespace heed {
namespace {

/// Disables Highway's targets above instruction_set(). Highway has one bit for each target (instruction set), and a
/// better target has a lower bit, so (HWY_AVX2 - 1) is the mask of all targets that are better than AVX2.
bool limit() {
#if HEED_X86
  const InstructionSet set = instruction_set();
  if (set == InstructionSet::baseline) hwy::DisableTargets(HWY_AVX2 | (HWY_AVX2 - 1));
  if (set == InstructionSet::avx2 || set == InstructionSet::avx2_vnni) hwy::DisableTargets(HWY_AVX2 - 1);
  if (set == InstructionSet::avx512) hwy::DisableTargets(HWY_AVX3 - 1);
#endif
  return true;
}

}  // namespace

void limit_highway_targets() {
  [[maybe_unused]] static const bool limited = limit();
}

}  // namespace heed
