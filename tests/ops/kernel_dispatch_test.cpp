#include "heed/base/instruction_set.h"

#include <cblas.h>
#include <doctest/doctest.h>
#include <omp.h>

#include <cstdlib>
#include <string>
#include <thread>
#include <vector>

#include "heed/ops/gemm/gemm.h"
#include "heed/ops/gemm/gemm_openblas.h"
#include "heed/ops/kernel_dispatch.h"
#include "highway_target.h"

using namespace heed;

TEST_CASE("bfloat16 is fast from AVX-512 BF16 on") {
  CHECK(has_fast_bfloat16() == (instruction_set() >= InstructionSet::avx512_bf16));
}

TEST_CASE("the library of matrix products uses no more than the instruction set") {
  const std::string library = gemm_library();
  CAPTURE(library);
  const auto has = [&](const char* text) { return library.find(text) != std::string::npos; };
  if (instruction_set() < InstructionSet::avx512) CHECK_FALSE((has("AVX-512") || has("AMX") || has("SkylakeX")));
  if (instruction_set() < InstructionSet::avx2) CHECK_FALSE((has("AVX2") || has("Haswell") || has("Zen")));
  if (instruction_set() < InstructionSet::amx) CHECK_FALSE(has("AMX"));
}

TEST_CASE("OpenBLAS is serial in every thread that calls it") {
  int threads = 0;
  std::thread([&] {
    const float a = 2, b = 3;
    float c = 0;
    gemm_openblas(1, 1, 1, 1, {&a, 1}, {&b, 1}, 0, &c, 1);
    threads = omp_get_max_threads();
  }).join();
  CHECK(threads == 1);
}

TEST_CASE("a kernel's version uses no more than the instruction set, and all of it that the kernel has") {
  using Kernel = int();
  Kernel* const baseline = [] { return 0; };
  Kernel* const avx2 = [] { return 2; };
  Kernel* const avx512 = [] { return 512; };
  const auto of = [&](InstructionSet set) { return kernel_for(set, avx512, avx2, baseline)(); };
  CHECK(of(InstructionSet::baseline) == 0);
  CHECK(of(InstructionSet::avx2) == 2);
  CHECK(of(InstructionSet::avx2_vnni) == 2);
  CHECK(of(InstructionSet::avx512) == 512);
  CHECK(of(InstructionSet::avx512_vnni) == 512);
  CHECK(of(InstructionSet::avx512_bf16) == 512);
  CHECK(of(InstructionSet::amx) == 512);
  CHECK(kernel_for(InstructionSet::amx, nullptr, avx2, baseline)() == 2);
  CHECK(kernel_for(InstructionSet::amx, nullptr, nullptr, baseline)() == 0);
}

#if defined(__x86_64__) && defined(__linux__)
TEST_CASE("Highway's kernels are compiled for all their versions, and called in the instruction set's") {
  const InstructionSet set = instruction_set();
  CHECK(dispatched_target() == (set >= InstructionSet::avx512 ? VectorTarget::avx512
                                : set >= InstructionSet::avx2 ? VectorTarget::avx2
                                                              : VectorTarget::baseline));
}

TEST_CASE("OpenBLAS takes the kernels it is told, from the oldest up and back, and multiplies by them") {
  if (std::getenv("OPENBLAS_CORETYPE")) return;
  openblas_description();  // the first call makes heed's choice of OpenBLAS's kernels
  const std::string before = openblas_get_corename();
  choose_openblas_core(InstructionSet::baseline);
  if (openblas_get_corename() == before && instruction_set() >= InstructionSet::avx2) {
    MESSAGE("skipped: this OpenBLAS has one core only");
    return;
  }
  const std::vector<float> a = {1, 2, 3, 4, 5, 6}, b = {1, 0, 2, 1, -1, 3};  // the matrices a [2, 3] and b [3, 2]
  for (const InstructionSet set : available_instruction_sets()) {
    CAPTURE(instruction_set_name(set));
    choose_openblas_core(set);
    const std::string core = openblas_get_corename();
    if (set >= InstructionSet::avx512)
      CHECK(core == "SkylakeX");
    else if (set >= InstructionSet::avx2)
      CHECK(core == "Haswell");
    std::vector<float> c(4);
    gemm_openblas(2, 2, 3, 1, {a.data(), 3}, {b.data(), 2}, 0, c.data(), 2);
    CHECK(c == std::vector<float>{2, 11, 8, 23});
  }
  CHECK(std::getenv("OPENBLAS_CORETYPE") == nullptr);
  choose_openblas_core(instruction_set());
}
#endif
