#pragma once

#include <doctest/doctest.h>

#include <hwy/targets.h>

namespace heed {

/// Runs `body` once for each instruction set that was compiled and that this CPU has.
template <class Body>
void for_each_simd_target(Body body) {
  for (const auto target : hwy::SupportedAndGeneratedTargets()) {
    hwy::SetSupportedTargetsForTest(target);
    hwy::GetChosenTarget().Update(hwy::SupportedTargets());
    INFO("instruction set ", hwy::TargetName(target));
    body();
  }
  hwy::SetSupportedTargetsForTest(0);
  hwy::GetChosenTarget().Update(hwy::SupportedTargets());
}

}  // namespace heed
