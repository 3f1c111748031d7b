// The machine's matrix-product peak as heed reaches it: GFLOP/s of gemm() and gemm_rows() for the shapes of training
// and decoding, on one thread and on all at once (each its own product, as heed works). Run by hand: heed_gemm_bench
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <thread>
#include <vector>

#include "heed/base/threads.h"
#include "heed/ops/gemm/gemm.h"
#include "heed/ops/gemm/gemm_rows.h"
#include "heed/tensor/aligned_vector.h"

using namespace heed;

namespace {

struct Product {
  std::int64_t m, n, k;
};

/// Seconds of one call, the least of several tries of about 50 ms.
template <class Function>
double seconds(Function function) {
  using Clock = std::chrono::steady_clock;
  double best = 1e9;
  for (int attempt = 0; attempt < 7; ++attempt) {
    int calls = 0;
    const auto start = Clock::now();
    double spent = 0;
    do {
      function();
      ++calls;
      spent = std::chrono::duration<double>(Clock::now() - start).count();
    } while (spent < 0.05);
    best = std::min(best, spent / calls);
  }
  return best;
}

/// GFLOP/s of a product, of all threads together.
double rate(ThreadPool& pool, const Product& p, bool rows, Precision precision) {
  std::vector<double> rates(static_cast<std::size_t>(pool.size()));
  pool.run([&](int thread) {
    const AlignedVector<float> a(static_cast<std::size_t>(p.m * p.k), 0.5F),
        b(static_cast<std::size_t>(p.n * p.k), 0.25F);
    AlignedVector<float> panels(static_cast<std::size_t>(Panels<float>::size(p.n, p.k)));
    pack_panels(p.n, p.k, b.data(), p.k, panels.data());
    AlignedVector<float> c(static_cast<std::size_t>(p.m * p.n));
    Arena arena;
    CpuContext device{arena, precision};
    const double spent = seconds([&] {
      if (rows) {
        gemm_rows(p.m, p.n, p.k, a.data(), p.k, Panels<float>{panels.data()}, nullptr, c.data(), p.n);
      } else {
        gemm(device, p.m, p.n, p.k, 1.0F, GemmOperand<float>{a.data(), p.k}, GemmOperand<float>{b.data(), p.k, true},
             0.0F, c.data(), p.n);
      }
    });
    rates[static_cast<std::size_t>(thread)] = 2e-9 * static_cast<double>(p.m * p.n * p.k) / spent;
  });
  double sum = 0;
  for (const double r : rates) sum += r;
  return sum;
}

}  // namespace

int main() {
  const int threads = std::max(1, static_cast<int>(std::thread::hardware_concurrency()));
  ThreadPool one(1), all(threads);
  std::printf("%s; bfloat16 in hardware: %s\n", gemm_library().c_str(), has_fast_bfloat16() ? "yes" : "no");
  std::printf("%22s %12s %12s %14s %14s\n", "GFLOP/s", "gemm 1", "gemm all", "gemm_rows 1", "gemm_rows all");
  double peak = 0;
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
    const double both = rate(all, p, false, Precision::float32);
    peak = std::max(peak, both);
    std::printf("%7lld x %5lld x %4lld %12.1f %12.1f %14.1f %14.1f\n", static_cast<long long>(p.m),
                static_cast<long long>(p.n), static_cast<long long>(p.k), rate(one, p, false, Precision::float32), both,
                rate(one, p, true, Precision::float32), rate(all, p, true, Precision::float32));
  }
  if (has_fast_bfloat16())
    std::printf("bfloat16 2048 x 2048 x 512, all threads: %.1f\n",
                rate(all, {2048, 2048, 512}, false, Precision::bfloat16));
  std::printf("peak: %.1f GFLOP/s float32 on %d threads\n", peak, threads);
}
