#pragma once

#include <span>
#include <string_view>

namespace heed {

/// What the kernels are chosen for. Each level is what a generation of x86-64 CPUs has, with all that its kernels need:
/// `baseline` SSE2 (on other CPUs what Highway finds), `avx2` with FMA, `avx2_vnni` with dot products of 8-bit integers
/// in AVX2's vectors, `avx512` (F, BW, DQ, VL), `avx512_vnni` with dot products of 8-bit integers, `avx512_bf16` with
/// those of bfloat16 as well, `amx` with tiles for both.
enum class InstructionSet { baseline, avx2, avx2_vnni, avx512, avx512_vnni, avx512_bf16, amx };

/// "sse2", "avx2", ...: the values of HEED_ISA.
std::string_view instruction_set_name(InstructionSet set);

/// Those that this CPU and system have, the best one last.
std::span<const InstructionSet> available_instruction_sets();

/// The one called `name`, the best one where `name` is empty; UsageError where it is unknown or not among `available`.
InstructionSet choose_instruction_set(std::string_view name, std::span<const InstructionSet> available);

/// The one in use, which every kernel and library of this process is chosen by: the best one available, or the one that
/// the environment's HEED_ISA names. UsageError as choose_instruction_set.
InstructionSet instruction_set();

}  // namespace heed
