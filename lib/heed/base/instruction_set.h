#pragma once

#include <span>
#include <string_view>

namespace heed {

/// The sets of CPU instructions that kernels are compiled for, in the order in which generations of x86-64 CPUs
/// brought them:
///
///     baseline     SSE2; on other CPUs the instructions that Highway finds
///     avx2         AVX2, FMA, BMI and BMI2
///     avx2_vnni    dot products of 8-bit integers in the vectors of AVX2
///     avx512       AVX-512 F, BW, DQ and VL
///     avx512_vnni  dot products of 8-bit integers in the vectors of AVX-512
///     avx512_bf16  dot products of bfloat16 too
///     amx          products of tiles (small matrices in registers) of bfloat16 and of 8-bit integers
enum class InstructionSet { baseline, avx2, avx2_vnni, avx512, avx512_vnni, avx512_bf16, amx };

/// Returns the name of an instruction set, as the environment variable HEED_ISA spells it: "sse2", "avx2", ...
std::string_view instruction_set_name(InstructionSet set);

/// Returns the instruction sets that both this CPU and this operating system support, from the oldest to the newest.
std::span<const InstructionSet> available_instruction_sets();

/// Returns the instruction set called `name`, or the last set in `available` (the best one) when `name` is empty.
/// Throws UsageError when `name` is unknown or not in `available`.
InstructionSet choose_instruction_set(std::string_view name, std::span<const InstructionSet> available);

/// Returns the instruction set that all kernels and libraries of this process use: the set that the environment
/// variable HEED_ISA names, or else the best set of this machine. Throws UsageError like choose_instruction_set().
InstructionSet instruction_set();

}  // namespace heed
