#include "heed/ops/gemm/gemm_onednn.h"

#include <omp.h>

#include <cstring>
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

/// Returns whether oneDNN's kernels are those for AVX2, which read the operands of most products where these are
/// stored, whatever the distance of the rows. For AVX-512, oneDNN takes this distance into account by itself. Its
/// kernels for SSE compute so slowly that memory does not limit them.
bool has_avx2_kernels() {
  return instruction_set() == InstructionSet::avx2 || instruction_set() == InstructionSet::avx2_vnni;
}

/// The number of float32 numbers in a line of the CPU's cache.
constexpr std::int64_t kFloatsOfCacheLine = 16;

/// Returns a copy, in the arena, of a matrix that is stored as `rows` rows of `columns` numbers. The rows of the copy
/// begin an odd number of cache lines apart.
GemmOperand<float> spread(Arena& arena, GemmOperand<float> x, std::int64_t rows, std::int64_t columns) {
  const std::int64_t stride = ((columns + kFloatsOfCacheLine - 1) / kFloatsOfCacheLine | 1) * kFloatsOfCacheLine;
  float* copy = arena.tensor<float>({rows, stride}).data();
  for (std::int64_t row = 0; row < rows; ++row)
    std::memcpy(copy + row * stride, x.data + row * x.stride, static_cast<std::size_t>(columns) * sizeof(float));
  return {copy, stride, x.transposed};
}

/// Spreads the operands of a product (see gemm_onednn()) whose stored rows compete for the same sets of the cache, if
/// the product is so large that it gains more than the copy costs: a copy of B costs 1/m of the product, a copy of A
/// 1/n. The first-level cache has 64 sets of lines of 64 bytes. Rows that begin 512 bytes apart, or a multiple of this,
/// therefore share at most 8 of the sets. The kernel reads a few numbers from each of many rows, so that a line is
/// replaced before the rest of it is read. The bounds are those at which a Zen 3 gains. A kernel reads only A^T and B
/// in this way; it also gains from B^T if all rows share one set.
void spread_where_worthwhile(Arena& arena, std::int64_t m, std::int64_t n, std::int64_t k, GemmOperand<float>& a,
                             GemmOperand<float>& b) {
  const bool weight_gradient = a.transposed;
  if (weight_gradient && a.stride % 128 == 0 && n >= 128) a = spread(arena, a, k, m);
  if (b.transposed) {
    if (b.stride % 1024 == 0 && m >= 128) b = spread(arena, b, n, k);
  } else if ((b.stride % 512 == 0 && m >= 64) || (b.stride % 128 == 0 && m >= (weight_gradient ? 128 : 256))) {
    b = spread(arena, b, k, n);
  }
}

}  // namespace

void gemm_onednn(Arena& arena, std::int64_t m, std::int64_t n, std::int64_t k, float alpha, GemmOperand<float> a,
                 GemmOperand<float> b, float beta, float* c, std::int64_t c_stride) {
  set_up_onednn();
  const ArenaScope scope(arena);
  if (has_avx2_kernels()) spread_where_worthwhile(arena, m, n, k, a, b);
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
      case dnnl::cpu_isa::avx2_vnni:
        return "AVX2 VNNI";
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
