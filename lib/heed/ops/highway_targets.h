#pragma once

namespace heed {

/// Makes Highway, the library of SIMD vectors, call only kernels that were compiled for instruction_set() or for an
/// older set. Must be called before the first kernel; later calls do nothing. Throws UsageError where the environment
/// variable HEED_ISA is not valid.
void limit_highway_targets();

}  // namespace heed
