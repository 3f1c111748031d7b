#include "heed/base/instruction_set.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <cstdlib>
#include <string>
#include <vector>

#include "heed/base/error.h"

using namespace heed;

namespace {

std::string message(std::string_view name, std::span<const InstructionSet> available) {
  try {
    choose_instruction_set(name, available);
  } catch (const UsageError& error) {
    return error.what();
  }
  return "no error";
}

}  // namespace

TEST_CASE("choose_instruction_set: the best, the one that is named, or what there is") {
  const std::vector<InstructionSet> old = {InstructionSet::baseline, InstructionSet::avx2};
  CHECK(choose_instruction_set("", old) == InstructionSet::avx2);
  CHECK(choose_instruction_set("avx2", old) == InstructionSet::avx2);
  const std::string baseline(instruction_set_name(InstructionSet::baseline));
  CHECK(choose_instruction_set(baseline, old) == InstructionSet::baseline);
  CHECK(message("amx", old) == "HEED_ISA=amx: not on this machine (it has: " + baseline + ", avx2)");
  CHECK(message("AVX2", old) == "HEED_ISA=AVX2: unknown instruction set (this machine has: " + baseline + ", avx2)");
}

TEST_CASE("instruction_set: HEED_ISA, else the best") {
  const auto available = available_instruction_sets();
  REQUIRE(!available.empty());
  CHECK(available.front() == InstructionSet::baseline);
  CHECK(std::is_sorted(available.begin(), available.end()));
  const char* name = std::getenv("HEED_ISA");
  CHECK(instruction_set() == choose_instruction_set(name ? name : "", available));
}
