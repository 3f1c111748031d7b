// Measures the speed of heed's matrix products and the fraction of the machine's peak that they reach. The script
// "scripts/bench gemm" runs all parts; by hand:
//   heed_gemm_bench         GFLOP/s of gemm() and gemm_rows() for the shapes of training and decoding
//   heed_gemm_bench peak    table rows for the instruction set that HEED_ISA names: the libraries' products of large
//                           matrices (in the libraries' preferred layout) and heed's own products, as the tools call
//                           them
//   heed_gemm_bench own     the same table rows without the libraries' products, for a machine on which a library's
//                           product ends the program (oneDNN 2.6 with AMX on some virtual machines)
//   heed_gemm_bench sets    the names of the instruction sets of this machine
// Each measurement runs on one thread, and then on all threads at once, where each thread computes its own product, as
// heed's tools do.
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <thread>
#include <unordered_map>
#include <vector>

#if HEED_HAS_ONEDNN
#include <omp.h>

#include <oneapi/dnnl/dnnl.hpp>
#endif

#include "heed/base/error.h"
#include "heed/base/instruction_set.h"
#include "heed/base/random.h"
#include "heed/base/threads.h"
#include "heed/ops/gemm/gemm.h"
#include "heed/ops/gemm/gemm_bfloat16.h"
#include "heed/ops/gemm/gemm_int8.h"
#include "heed/ops/gemm/gemm_rows.h"
#include "heed/tensor/aligned_vector.h"

using namespace heed;

namespace {

/// The sizes of a product C [m, n] = A [m, k] B [k, n].
struct Product {
  std::int64_t m, n, k;
};

using Run = std::function<void()>;

/// Returns the seconds that one call of `run` takes: the least of several tries of about 50 ms each.
double seconds(const Run& run) {
  using Clock = std::chrono::steady_clock;
  double best = 1e9, all = 0;
  for (int attempt = 0; attempt < 7 && all < 1.5; ++attempt) {
    int calls = 0;
    const auto start = Clock::now();
    double spent = 0;
    do {
      run();
      ++calls;
      spent = std::chrono::duration<double>(Clock::now() - start).count();
    } while (spent < 0.05);
    best = std::min(best, spent / calls);
    all += spent;
  }
  return best;
}

/// Returns `size` normally distributed random numbers, as activations and weights are: without VNNI, the time of a
/// product of 8-bit integers depends on their distribution.
AlignedVector<float> normal(std::int64_t size) {
  AlignedVector<float> numbers(static_cast<std::size_t>(size));
  const RandomStream stream(1, RandomUse::initialisation);
  for (std::size_t i = 0; i < numbers.size(); ++i) numbers[i] = static_cast<float>(stream.normal(i));
  return numbers;
}

/// The matrices that a thread needs for a product of m rows with a weight [n, k].
struct Memory {
  explicit Memory(const Product& product)
      : p(product), a(normal(p.m * p.k)), b(normal(p.n * p.k)), c(static_cast<std::size_t>(p.m * p.n)) {}

  Product p;
  AlignedVector<float> a, b, c;
  AlignedVector<std::byte> weight;
  Arena arena;
};

/// A way to multiply matrices: a function that packs the weight (which is not timed) and returns the function to be
/// timed, or an empty function where this machine has no such product.
using Way = Run (*)(Memory& memory);

Run library_float32(Memory& memory) {
  return [&memory] {
    const auto& [p, a, b, c, weight, arena] = memory;
    CpuContext device{memory.arena, Precision::float32};
    gemm(device, p.m, p.n, p.k, 1.0F, GemmOperand<float>{a.data(), p.k}, GemmOperand<float>{b.data(), p.k, true}, 0.0F,
         memory.c.data(), p.n);
  };
}

Run heed_float32(Memory& memory) {
  const Product p = memory.p;
  memory.weight.resize(static_cast<std::size_t>(Panels<float>::size(p.n, p.k)) * sizeof(float));
  auto* const panels = reinterpret_cast<float*>(memory.weight.data());
  pack_panels(p.n, p.k, memory.b.data(), p.k, panels);
  return [&memory, p, panels] {
    gemm_rows(p.m, p.n, p.k, memory.a.data(), p.k, Panels<float>{panels}, nullptr, memory.c.data(), p.n);
  };
}

Run heed_bfloat16(Memory& memory) {
  if (!has_fast_bfloat16()) return {};
  const Product p = memory.p;
  memory.weight.resize(static_cast<std::size_t>(bfloat16_tile_words(p.k, p.n)) * sizeof(std::uint32_t));
  const Bfloat16Tiles tiles =
      bfloat16_tiles(reinterpret_cast<std::uint32_t*>(memory.weight.data()), p.k, p.n, {memory.b.data(), p.k, true});
  return [&memory, p, tiles] {
    gemm_bfloat16(memory.arena, p.m, 1, {memory.a.data(), p.k}, tiles, 0, memory.c.data(), p.n);
  };
}

Run heed_int8(Memory& memory) {
  const Product p = memory.p;
  memory.weight.resize(static_cast<std::size_t>(int8_weight_bytes(p.n, p.k)));
  quantize_weight(p.n, p.k, 0, p.n, memory.b.data(), p.k, memory.weight.data());
  return [&memory, p] {
    const ArenaScope scope(memory.arena);
    gemm_int8(quantize_activations(memory.arena, p.m, p.k, memory.a.data(), p.k), p.n, 0, p.n, {memory.weight.data()},
              nullptr, memory.c.data(), p.n);
  };
}

#if HEED_HAS_ONEDNN
/// Returns a product of oneDNN with these types of operands and with oneDNN's preferred layout of weights, or an empty
/// function where oneDNN has no optimised kernel for it.
Run onednn(const Product& p, dnnl::memory::data_type left, dnnl::memory::data_type right,
           dnnl::memory::data_type result) {
  using dnnl::memory;
  using tag = memory::format_tag;
  omp_set_num_threads(1);
  try {
    const dnnl::engine engine(dnnl::engine::kind::cpu, 0);
    const memory::desc a({p.m, p.k}, left, tag::ab), b({p.k, p.n}, right, tag::any), c({p.m, p.n}, result, tag::ab);
#if DNNL_VERSION_MAJOR >= 3
    const dnnl::matmul::primitive_desc best(engine, a, b, c);
#else
    const dnnl::matmul::primitive_desc best(dnnl::matmul::desc(a, b, c), engine);
#endif
    if (std::string_view(best.impl_info_str()).starts_with("ref")) return {};
    std::unordered_map<int, memory> arguments = {{DNNL_ARG_SRC, memory(best.src_desc(), engine)},
                                                 {DNNL_ARG_WEIGHTS, memory(best.weights_desc(), engine)},
                                                 {DNNL_ARG_DST, memory(best.dst_desc(), engine)}};
    for (auto& [index, argument] : arguments) {
      auto* const bytes = static_cast<std::uint8_t*>(argument.get_data_handle());
      std::fill(bytes, bytes + argument.get_desc().get_size(), std::uint8_t{1});
    }
    return [product = dnnl::matmul(best), stream = dnnl::stream(engine), arguments]() mutable {
      product.execute(stream, arguments);
      stream.wait();
    };
  } catch (const dnnl::error&) {
    return {};
  }
}

Run library_bfloat16(Memory& memory) {
  using type = dnnl::memory::data_type;
  return onednn(memory.p, type::bf16, type::bf16, type::f32);
}

Run library_int8(Memory& memory) {
  using type = dnnl::memory::data_type;
  return onednn(memory.p, type::u8, type::s8, type::s32);
}
#else
Run library_bfloat16(Memory&) {
  return {};
}

Run library_int8(Memory&) {
  return {};
}
#endif

/// Returns the speed of a product on all threads together, in 1e9 operations a second, or nothing where this machine
/// has no such product.
std::optional<double> rate(ThreadPool& pool, const Product& p, Way way) {
  std::vector<double> rates(static_cast<std::size_t>(pool.size()));
  pool.run([&](int thread) {
    Memory memory(p);
    if (const Run run = way(memory))
      rates[static_cast<std::size_t>(thread)] = 2e-9 * static_cast<double>(p.m * p.n * p.k) / seconds(run);
  });
  double sum = 0;
  for (const double r : rates) sum += r;
  return sum > 0 ? std::optional(sum) : std::nullopt;
}

/// Prints one table row: the speed of the libraries' products (left out where `own_only` is true) and of heed's own, in
/// float32, bfloat16 and int8.
void print_peak(ThreadPool& pool, bool own_only) {
  constexpr Product kLarge = {1024, 1024, 512};
  std::printf("| %s | %d |", std::string(instruction_set_name(instruction_set())).c_str(), pool.size());
  for (const auto& [library, ours] : {std::pair<Way, Way>{library_float32, heed_float32},
                                      {library_bfloat16, heed_bfloat16},
                                      {library_int8, heed_int8}}) {
    const auto peak = own_only ? std::nullopt : rate(pool, kLarge, library), reached = rate(pool, kLarge, ours);
    peak ? std::printf(" %.1f |", *peak) : std::printf(" |");
    reached ? std::printf(" %.1f |", *reached) : std::printf(" |");
    peak&& reached ? std::printf(" %.0f %% |", 100 * *reached / *peak) : std::printf(" |");
  }
  std::printf("\n");
}

/// Prints the speed of gemm() and gemm_rows() for the shapes of training and decoding.
void print_shapes(ThreadPool& one, ThreadPool& all) {
  std::printf("%s; %s; GFLOP/s on 1 and on %d threads\n", std::string(instruction_set_name(instruction_set())).c_str(),
              gemm_library().c_str(), all.size());
  std::printf("%22s %12s %12s %14s %14s\n", "", "gemm 1", "gemm all", "gemm_rows 1", "gemm_rows all");
  for (const Product& p : {Product{2048, 2048, 512},
                           {1024, 128, 128},
                           {1024, 384, 128},
                           {128, 9700, 128},
                           {1024, 512, 512},
                           {1024, 2048, 512},
                           {64, 512, 512},
                           {64, 128, 128},
                           {64, 9700, 128},
                           {5, 9700, 128},
                           {1, 512, 512}}) {
    std::printf("%7lld x %5lld x %4lld %12.1f %12.1f %14.1f %14.1f\n", static_cast<long long>(p.m),
                static_cast<long long>(p.n), static_cast<long long>(p.k), rate(one, p, library_float32).value(),
                rate(all, p, library_float32).value(), rate(one, p, heed_float32).value(),
                rate(all, p, heed_float32).value());
  }
}

}  // namespace

int main(int argc, char** argv) {
  try {
    const std::string_view what = argc > 1 ? argv[1] : "shapes";
    if (what == "sets") {
      for (const InstructionSet set : available_instruction_sets())
        std::printf("%s\n", std::string(instruction_set_name(set)).c_str());
      return 0;
    }
    static_cast<void>(gemm_library());  // limits oneDNN or OpenBLAS to HEED_ISA; must come before other uses of oneDNN
    ThreadPool one(1), all(available_threads());
    if (what == "peak" || what == "own") {
      print_peak(one, what == "own");
      if (all.size() > 1) print_peak(all, what == "own");
    } else {
      print_shapes(one, all);
    }
    return 0;
  } catch (const Error& error) {
    std::fprintf(stderr, "heed_gemm_bench: %s\n", error.what());
    return 1;
  }
}
