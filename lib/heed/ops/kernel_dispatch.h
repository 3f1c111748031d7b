#pragma once

#include <type_traits>

#include "heed/base/instruction_set.h"

namespace heed {

/// Returns the version of a kernel that runs on the instruction set `set`: `avx512` from AVX-512 on, `avx2` from AVX2
/// on, otherwise `baseline`. `avx512` or `avx2` is null where the kernel has no such version, as on other CPUs than
/// x86-64; the next older version takes its place.
template <class Kernel>
Kernel* kernel_for(InstructionSet set, std::type_identity_t<Kernel>* avx512, std::type_identity_t<Kernel>* avx2,
                   Kernel* baseline) {
  if (avx512 && set >= InstructionSet::avx512) return avx512;
  if (avx2 && set >= InstructionSet::avx2) return avx2;
  return baseline;
}

}  // namespace heed
