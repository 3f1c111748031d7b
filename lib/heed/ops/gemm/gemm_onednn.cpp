#include "heed/ops/gemm/gemm_onednn.h"

#include <omp.h>

#include <map>
#include <oneapi/dnnl/dnnl.hpp>
#include <tuple>

#include "heed/base/error.h"
#include "heed/ops/gemm/bfloat16.h"

namespace heed {
namespace {

/// oneDNN's loops take as many threads as OpenMP says in the calling thread; heed's kernels are serial.
void use_one_thread() {
  thread_local const bool done = (omp_set_num_threads(1), true);
  (void)done;
}

std::int64_t round_up(std::int64_t n, std::int64_t step) {
  return (n + step - 1) / step * step;
}

/// A [rows, columns] matrix of bfloat16, not transposed, padded with zeros.
Tensor<std::uint16_t> pack(Arena& scratch, GemmOperand<float> x, std::int64_t rows, std::int64_t columns,
                           std::int64_t padded_rows, std::int64_t padded_columns) {
  const Tensor<std::uint16_t> out = scratch.zeros<std::uint16_t>({padded_rows, padded_columns});
  for (std::int64_t i = 0; i < rows; ++i) {
    std::uint16_t* row = out.row(i);
    if (x.transposed) {
      for (std::int64_t j = 0; j < columns; ++j) row[j] = to_bfloat16(x.data[j * x.stride + i]);
    } else {
      for (std::int64_t j = 0; j < columns; ++j) row[j] = to_bfloat16(x.data[i * x.stride + j]);
    }
  }
  return out;
}

/// One thread's compiled bfloat16 products by padded shape.
class MatmulCache {
 public:
  const dnnl::matmul& get(std::int64_t m, std::int64_t n, std::int64_t k) {
    const auto key = std::make_tuple(m, n, k);
    if (const auto found = cache_.find(key); found != cache_.end()) return found->second;
    using dims = dnnl::memory::dims;
    const auto desc = [](dims d, dnnl::memory::data_type type) {
      return dnnl::memory::desc(d, type, dnnl::memory::format_tag::ab);
    };
    const dnnl::matmul::desc product(desc({m, k}, dnnl::memory::data_type::bf16),
                                     desc({k, n}, dnnl::memory::data_type::bf16),
                                     desc({m, n}, dnnl::memory::data_type::f32));
    return cache_.emplace(key, dnnl::matmul(dnnl::matmul::primitive_desc(product, engine_))).first->second;
  }
  dnnl::engine& engine() { return engine_; }
  dnnl::stream& stream() { return stream_; }

 private:
  dnnl::engine engine_{dnnl::engine::kind::cpu, 0};
  dnnl::stream stream_{engine_};
  std::map<std::tuple<std::int64_t, std::int64_t, std::int64_t>, dnnl::matmul> cache_;
};

}  // namespace

void gemm_onednn(std::int64_t m, std::int64_t n, std::int64_t k, float alpha, GemmOperand<float> a,
                 GemmOperand<float> b, float beta, float* c, std::int64_t c_stride) {
  use_one_thread();
  if (dnnl_sgemm(a.transposed ? 'T' : 'N', b.transposed ? 'T' : 'N', m, n, k, alpha, a.data, a.stride, b.data, b.stride,
                 beta, c, c_stride) != dnnl_success)
    throw Error("internal: oneDNN refused a product of [" + std::to_string(m) + ", " + std::to_string(k) + "] and [" +
                std::to_string(k) + ", " + std::to_string(n) + "]");
}

void gemm_onednn_bfloat16(Arena& scratch, std::int64_t m, std::int64_t n, std::int64_t k, float alpha,
                          GemmOperand<float> a, GemmOperand<float> b, float beta, float* c, std::int64_t c_stride) {
  use_one_thread();
  thread_local MatmulCache cache;
  const std::int64_t rows = round_up(m, m > 64 ? 64 : 8), columns = round_up(n, 32), depth = round_up(k, 32);
  const Tensor<std::uint16_t> left = pack(scratch, a, m, k, rows, depth);
  const Tensor<std::uint16_t> right = pack(scratch, b, k, n, depth, columns);
  const Tensor<float> product = scratch.tensor<float>({rows, columns});
  const auto memory = [&](std::int64_t r, std::int64_t s, dnnl::memory::data_type type, void* data) {
    return dnnl::memory({{r, s}, type, dnnl::memory::format_tag::ab}, cache.engine(), data);
  };
  cache.get(rows, columns, depth)
      .execute(cache.stream(), {{DNNL_ARG_SRC, memory(rows, depth, dnnl::memory::data_type::bf16, left.data())},
                                {DNNL_ARG_WEIGHTS, memory(depth, columns, dnnl::memory::data_type::bf16, right.data())},
                                {DNNL_ARG_DST, memory(rows, columns, dnnl::memory::data_type::f32, product.data())}});
  for (std::int64_t i = 0; i < m; ++i)
    for (std::int64_t j = 0; j < n; ++j) {
      float& out = c[i * c_stride + j];
      out = alpha * product.row(i)[j] + (beta == 0 ? 0 : beta * out);
    }
}

bool onednn_has_bfloat16() {
  static const bool has = [] {
    switch (dnnl::get_effective_cpu_isa()) {
      case dnnl::cpu_isa::avx512_core_bf16:
      case dnnl::cpu_isa::avx512_core_amx:
        return true;
      default:
        return false;
    }
  }();
  return has;
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
