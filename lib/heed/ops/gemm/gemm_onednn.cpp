#include "heed/ops/gemm/gemm_onednn.h"

#include <omp.h>

#include <oneapi/dnnl/dnnl.hpp>

#include "heed/base/error.h"

namespace heed {
namespace {

/// oneDNN's loops take as many threads as OpenMP says in the calling thread; heed's kernels are serial.
void use_one_thread() {
  thread_local const bool done = (omp_set_num_threads(1), true);
  (void)done;
}

}  // namespace

void gemm_onednn(std::int64_t m, std::int64_t n, std::int64_t k, float alpha, GemmOperand<float> a,
                 GemmOperand<float> b, float beta, float* c, std::int64_t c_stride) {
  use_one_thread();
  if (dnnl_sgemm(a.transposed ? 'T' : 'N', b.transposed ? 'T' : 'N', m, n, k, alpha, a.data, a.stride, b.data, b.stride,
                 beta, c, c_stride) != dnnl_success)
    throw Error("internal: oneDNN refused a product of [" + std::to_string(m) + ", " + std::to_string(k) + "] and [" +
                std::to_string(k) + ", " + std::to_string(n) + "]");
}

std::string onednn_description() {
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
