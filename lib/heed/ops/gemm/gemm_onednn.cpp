#include "heed/ops/gemm/gemm_onednn.h"

#include <omp.h>

#include <oneapi/dnnl/dnnl.hpp>

#include "heed/base/error.h"
#include "heed/base/instruction_set.h"

namespace heed {
namespace {

dnnl_cpu_isa_t onednn_isa(InstructionSet set) {
  switch (set) {
    case InstructionSet::baseline:
      return dnnl_cpu_isa_sse41;  // the lowest instruction set for which oneDNN has kernels
    case InstructionSet::avx2:
      return dnnl_cpu_isa_avx2;
    case InstructionSet::avx2_vnni:
      return dnnl_cpu_isa_avx2_vnni;
    case InstructionSet::avx512:
      return dnnl_cpu_isa_avx512_core;
    case InstructionSet::avx512_vnni:
      return dnnl_cpu_isa_avx512_core_vnni;
    case InstructionSet::avx512_bf16:
      return dnnl_cpu_isa_avx512_core_bf16;
    case InstructionSet::amx:
      return dnnl_cpu_isa_avx512_core_amx;
  }
  throw Error("internal: unknown instruction set");
}

/// Limits oneDNN to the instruction set that the environment variable HEED_ISA names, and to one thread, because heed's
/// kernels are serial. oneDNN takes its number of threads from a setting of OpenMP that each calling thread has for
/// itself.
void set_up_onednn() {
  [[maybe_unused]] static const bool limited = [] {
    const InstructionSet set = instruction_set();
    return set == available_instruction_sets().back() || dnnl_set_max_cpu_isa(onednn_isa(set)) == dnnl_success;
  }();
  thread_local const bool done = (omp_set_num_threads(1), true);
  (void)done;
}

}  // namespace

void gemm_onednn(std::int64_t m, std::int64_t n, std::int64_t k, float alpha, GemmOperand<float> a,
                 GemmOperand<float> b, float beta, float* c, std::int64_t c_stride) {
  set_up_onednn();
  if (dnnl_sgemm(a.transposed ? 'T' : 'N', b.transposed ? 'T' : 'N', m, n, k, alpha, a.data, a.stride, b.data, b.stride,
                 beta, c, c_stride) != dnnl_success)
    throw Error("internal: oneDNN refused a product of [" + std::to_string(m) + ", " + std::to_string(k) + "] and [" +
                std::to_string(k) + ", " + std::to_string(n) + "]");
}

std::string onednn_description() {
  set_up_onednn();
  const dnnl_version_t* version = dnnl_version();
  const auto isa = [] {
    switch (dnnl::get_effective_cpu_isa()) {
      case dnnl::cpu_isa::sse41:
        return "SSE4.1";
      case dnnl::cpu_isa::avx:
        return "AVX";
      case dnnl::cpu_isa::avx2:
        return "AVX2";
      case dnnl::cpu_isa::avx512_core:
        return "AVX-512";
      case dnnl::cpu_isa::avx512_core_vnni:
        return "AVX-512 VNNI";
      case dnnl::cpu_isa::avx512_core_bf16:
        return "AVX-512 BF16";
      case dnnl::cpu_isa::avx512_core_amx:
        return "AMX";
      default:
        return "generic";
    }
  };
  return "oneDNN " + std::to_string(version->major) + "." + std::to_string(version->minor) + "." +
         std::to_string(version->patch) + " (" + isa() + ")";
}

}  // namespace heed
