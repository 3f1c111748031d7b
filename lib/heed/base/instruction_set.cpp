#include "heed/base/instruction_set.h"

#include <algorithm>
#include <cstdlib>
#include <string>
#include <vector>

#include "heed/base/error.h"
#include "heed/base/x86.h"

#if HEED_X86
#include <cpuid.h>
#include <sys/syscall.h>
#include <unistd.h>
#endif

namespace heed {
namespace {

constexpr std::string_view kNames[] = {
    HEED_X86 ? "sse2" : "native", "avx2", "avx2_vnni", "avx512", "avx512_vnni", "avx512_bf16", "amx"};

#if HEED_X86
/// Asks Linux for permission to use the tile registers of AMX (Intel's instructions for small matrices), and returns
/// whether this process may use these registers.
bool may_use_tiles() {
  constexpr int kRequestPermission = 0x1023, kTileData = 18;
  return ::syscall(SYS_arch_prctl, kRequestPermission, kTileData) == 0;
}

/// Finds the instruction sets of this machine. The compiler's __builtin_cpu_supports() tests for AVX2 and AVX-512 that
/// both the CPU and the operating system support the vector registers. The newer instructions (VNNI, BF16) use the same
/// registers, so it is enough that CPUID leaf 7 reports them (Intel 64 manual).
std::vector<InstructionSet> find_sets() {
  std::vector<InstructionSet> sets = {InstructionSet::baseline};
  __builtin_cpu_init();
  if (!__builtin_cpu_supports("avx2") || !__builtin_cpu_supports("fma") || !__builtin_cpu_supports("bmi") ||
      !__builtin_cpu_supports("bmi2"))
    return sets;
  sets.push_back(InstructionSet::avx2);
  constexpr unsigned kAvxVnni = 1u << 4, kAvx512Bf16 = 1u << 5;  // bits of CPUID leaf 7.1, register EAX
  constexpr unsigned kAvx512Vnni = 1u << 11;                     // bit of CPUID leaf 7.0, register ECX
  constexpr unsigned kTiles = 1u << 24, kTilesBf16 = 1u << 22,
                     kTilesInt8 = 1u << 25;  // bits of CPUID leaf 7.0, register EDX
  constexpr unsigned kAmx = kTiles | kTilesBf16 | kTilesInt8;
  unsigned eax = 0, ebx = 0, ecx = 0, edx = 0;
  const unsigned more = __get_cpuid_count(7, 1, &eax, &ebx, &ecx, &edx) != 0 ? eax : 0;
  __get_cpuid_count(7, 0, &eax, &ebx, &ecx, &edx);
  if ((more & kAvxVnni) != 0) sets.push_back(InstructionSet::avx2_vnni);
  if (!__builtin_cpu_supports("avx512f") || !__builtin_cpu_supports("avx512bw") ||
      !__builtin_cpu_supports("avx512dq") || !__builtin_cpu_supports("avx512vl"))
    return sets;
  sets.push_back(InstructionSet::avx512);
  if ((ecx & kAvx512Vnni) == 0) return sets;
  sets.push_back(InstructionSet::avx512_vnni);
  if ((more & kAvx512Bf16) == 0) return sets;
  sets.push_back(InstructionSet::avx512_bf16);
  if ((edx & kAmx) == kAmx && may_use_tiles()) sets.push_back(InstructionSet::amx);
  return sets;
}
#else
std::vector<InstructionSet> find_sets() {
  return {InstructionSet::baseline};
}
#endif

}  // namespace

std::string_view instruction_set_name(InstructionSet set) {
  return kNames[static_cast<std::size_t>(set)];
}

std::span<const InstructionSet> available_instruction_sets() {
  static const std::vector<InstructionSet> sets = find_sets();
  return sets;
}

InstructionSet choose_instruction_set(std::string_view name, std::span<const InstructionSet> available) {
  if (name.empty()) return available.back();
  std::string names;
  for (const InstructionSet set : available) {
    if (instruction_set_name(set) == name) return set;
    names += (names.empty() ? "" : ", ") + std::string(instruction_set_name(set));
  }
  const bool known = std::find(std::begin(kNames), std::end(kNames), name) != std::end(kNames);
  throw UsageError("HEED_ISA=" + std::string(name) +
                   (known ? ": not on this machine (it has: " : ": unknown instruction set (this machine has: ") +
                   names + ")");
}

InstructionSet instruction_set() {
  static const InstructionSet chosen = [] {
    const char* name = std::getenv("HEED_ISA");
    return choose_instruction_set(name ? name : "", available_instruction_sets());
  }();
  return chosen;
}

}  // namespace heed
