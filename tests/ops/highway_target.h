#pragma once

namespace heed {

/// The versions of a Highway kernel that x86-64 has.
enum class VectorTarget { baseline, avx2, avx512 };

/// Returns the version of a kernel that HEED_DISPATCH calls on this machine, with the value of HEED_ISA.
VectorTarget dispatched_target();

}  // namespace heed
