#include "cuda_emulation.h"

#include <cmath>
#include <numeric>
#include <vector>

#include <doctest/doctest.h>

#include "heed/base/error.h"
#include "heed/tensor/cuda_language.h"
#include "heed/tensor/cuda_mma.h"
#include "heed/tensor/cuda_packs.h"

namespace heed {
namespace {

using emulation::kThreadOrders;
using emulation::run_grid;
using emulation::set_thread_order;

TEST_CASE("emulation of CUDA: every thread of every block runs once, with its place") {
  std::vector<int> count(2 * 3 * 4 * 5);
  run_grid({2, 3}, {4, 5}, 0, [&] {
    CHECK(gridDim.x == 2);
    CHECK(blockDim.y == 5);
    ++count[((blockIdx.y * gridDim.x + blockIdx.x) * blockDim.y + threadIdx.y) * blockDim.x + threadIdx.x];
  });
  CHECK(count == std::vector<int>(count.size(), 1));
}

/// Lets each thread write its number and, after a barrier or without one, sum the numbers of all.
std::vector<float> sums_of_numbers(bool barrier) {
  std::vector<float> out(100);
  run_grid({1}, {100}, 100 * sizeof(float), [&] {
    auto* const numbers = shared_memory<float>();
    numbers[threadIdx.x] = static_cast<float>(threadIdx.x);
    if (barrier) __syncthreads();
    out[threadIdx.x] = std::accumulate(numbers, numbers + 100, 0.0F);
  });
  return out;
}

TEST_CASE("emulation of CUDA: a barrier waits for all, and a missing one is seen in some order") {
  for (const auto order : kThreadOrders) {
    set_thread_order(order);
    CHECK(sums_of_numbers(true) == std::vector<float>(100, 4950));
  }
  set_thread_order(emulation::ThreadOrder::ascending);
  const float first = sums_of_numbers(false)[0], last = sums_of_numbers(false)[99];
  CHECK(first != first);  // NaN: the memory of a block begins so
  CHECK(last == 4950);
  set_thread_order(emulation::ThreadOrder::descending);
  CHECK(sums_of_numbers(false)[0] == 4950);
  set_thread_order(emulation::ThreadOrder::ascending);
}

TEST_CASE("emulation of CUDA: lanes of a warp hand each other numbers") {
  for (const auto order : kThreadOrders) {
    set_thread_order(order);
    std::vector<int> xor_of(64), down(64), up(64), from(64), halves(64);
    std::vector<unsigned> votes(64);
    run_grid({1}, {64}, 0, [&] {
      const int i = static_cast<int>(threadIdx.x);
      const auto at = static_cast<std::size_t>(i);
      xor_of[at] = __shfl_xor_sync(0xFFFFFFFF, i, 5);
      down[at] = __shfl_down_sync(0xFFFFFFFF, i, 3);
      up[at] = __shfl_up_sync(0xFFFFFFFF, i, 3);
      from[at] = __shfl_sync(0xFFFFFFFF, i, 7);
      halves[at] = __shfl_sync(0xFFFFFFFF, i, 2, 16);
      votes[at] = __ballot_sync(0xFFFFFFFF, i % 3 == 0);
      CHECK(__any_sync(0xFFFFFFFF, i == 33) == (i >= 32 ? 1 : 0));
      CHECK(__all_sync(0xFFFFFFFF, i < 32) == (i < 32 ? 1 : 0));
    });
    for (int i = 0; i < 64; ++i) {
      const auto at = static_cast<std::size_t>(i);
      CHECK(xor_of[at] == (i ^ 5));
      CHECK(down[at] == (i % 32 < 29 ? i + 3 : i));
      CHECK(up[at] == (i % 32 < 3 ? i : i - 3));
      CHECK(from[at] == i / 32 * 32 + 7);
      CHECK(halves[at] == i / 16 * 16 + 2);
      unsigned expected = 0;
      for (int lane = 0; lane < 32; ++lane) expected |= ((i / 32 * 32 + lane) % 3 == 0 ? 1U : 0U) << lane;
      CHECK(votes[at] == expected);
    }
  }
  set_thread_order(emulation::ThreadOrder::ascending);
}

TEST_CASE("emulation of CUDA: part of a warp, named by a mask") {
  std::vector<int> sum(32, -1);
  run_grid({1}, {32}, 0, [&] {
    if (threadIdx.x % 2 == 0) return;
    int value = static_cast<int>(threadIdx.x);
    for (int bits = 16; bits > 1; bits /= 2) value += __shfl_xor_sync(0xAAAAAAAA, value, bits);
    sum[threadIdx.x] = value;
  });
  for (std::size_t i = 0; i < 32; ++i) CHECK(sum[i] == (i % 2 == 0 ? -1 : 256));
}

TEST_CASE("emulation of CUDA: a warp loads four matrices, also transposed") {
  // The rows of matrix m begin at element 8 m of a row of 40 numbers; element k is the number k.
  constexpr int kRowNumbers = 40;
  for (const auto order : kThreadOrders) {
    set_thread_order(order);
    for (const bool transposed : {false, true}) {
      CAPTURE(transposed);
      run_grid({1}, {32}, 8 * kRowNumbers * sizeof(Bfloat16), [&] {
        auto* const numbers = shared_memory<std::uint32_t>();
        const int lane = lane_of_warp(), g = lane / 4, t = lane % 4;
        for (int i = lane; i < 4 * kRowNumbers; i += 32)
          numbers[i] = static_cast<std::uint32_t>(2 * i) | static_cast<std::uint32_t>(2 * i + 1) << 16;
        __syncthreads();
        std::uint32_t words[4];
        const std::uint32_t* const row = numbers + (lane % 8 * kRowNumbers + lane / 8 * 8) / 2;
        transposed ? load_transposed(words, row) : load_matrices(words, row);
        for (int m = 0; m < 4; ++m) {
          const int first = transposed ? 2 * t * kRowNumbers + g : g * kRowNumbers + 2 * t;
          const int second = first + (transposed ? kRowNumbers : 1);
          CHECK(words[m] == static_cast<std::uint32_t>((8 * m + first) | (8 * m + second) << 16));
        }
      });
    }
  }
  set_thread_order(emulation::ThreadOrder::ascending);
  CHECK_THROWS_WITH_AS(run_grid({1}, {32}, 1024,
                                [] {
                                  std::uint32_t words[4];
                                  load_matrices(words, shared_memory<std::uint32_t>() + 1);
                                }),
                       "emulation of CUDA: an address is not aligned to 16 bytes", Error);
}

TEST_CASE("emulation of CUDA: lanes that wait at different places of the source wait for ever") {
  CHECK_THROWS_WITH_AS(run_grid({1}, {32}, 0,
                                [] {
                                  if (threadIdx.x < 7) __syncwarp();
                                  warp_sum(1);
                                }),
                       "internal: the threads of a block wait for each other for ever: 0 at a barrier of the block, 32 "
                       "at one of a warp, 0 have ended",
                       Error);
}

TEST_CASE("emulation of CUDA: a maximum is NaN for all threads where one number is NaN") {
  for (const auto order : kThreadOrders) {
    set_thread_order(order);
    std::vector<float> of_warp(64), of_block(64);
    run_grid({1}, {64}, 2 * sizeof(float), [&] {
      const float x = threadIdx.x == 5 ? NAN : static_cast<float>(threadIdx.x);
      of_warp[threadIdx.x] = warp_max(x);
      of_block[threadIdx.x] = block_max(x, shared_memory<float>());
    });
    for (std::size_t i = 0; i < 64; ++i) {
      CHECK(std::isnan(of_warp[i]) == (i < 32));
      CHECK(std::isnan(of_block[i]));
    }
  }
  set_thread_order(emulation::ThreadOrder::ascending);
}

TEST_CASE("emulation of CUDA: threads that wait for ever are an error, and so is what a thread throws") {
  CHECK_THROWS_WITH_AS(run_grid({1}, {64}, 0,
                                [] {
                                  if (threadIdx.x < 32) return __syncthreads();
                                  __syncwarp();
                                  for (int i = 0; threadIdx.x == 40 && i < 1; ++i) __syncwarp();
                                }),
                       "internal: the threads of a block wait for each other for ever: 32 at a barrier of the block, 1 "
                       "at one of a warp, "
                       "31 have ended",
                       Error);
  CHECK_THROWS_WITH_AS(run_grid({2}, {3}, 0, [] { throw Error("thread"); }), "thread", Error);
  CHECK_THROWS_WITH_AS(run_grid({1}, {1025}, 0, [] {}), "internal: a block of 1025 threads (1 to 1024 are possible)",
                       Error);
}

TEST_CASE("emulation of CUDA: an address of the host among the parameters of a kernel is an error") {
  struct Parameters {
    std::int64_t n = 0;
    const float* from = nullptr;
    bool is_first = false;
  };
  float on_host = 0;
  constexpr std::size_t kBytes = 8192;
  auto* const on_gpu = static_cast<float*>(emulation::allocate_on_gpu(kBytes));
  const auto require = [](auto parameter) { emulation::require_memory_of_gpu(parameter); };
  CHECK_NOTHROW(require(on_gpu));
  CHECK_NOTHROW(require(on_gpu + kBytes / sizeof(float)));  // an empty array at the end
  CHECK_NOTHROW(require(Parameters{-1, on_gpu, true}));
  CHECK_NOTHROW(require(Parameters{std::int64_t{1} << 62, nullptr, true}));
  CHECK_NOTHROW(require(1.5F));
  const char* const message = "emulation of CUDA: a kernel gets an address of memory of the host";
  CHECK_THROWS_WITH_AS(require(&on_host), message, Error);
  CHECK_THROWS_WITH_AS(require(Parameters{1, &on_host, true}), message, Error);
  emulation::free_on_gpu(on_gpu, kBytes);
  CHECK_NOTHROW(require(on_gpu));  // which is no memory of the host either
}

TEST_CASE("emulation of CUDA: packs are copied, rounded and widened, and must be aligned") {
  alignas(16) float from[9] = {1, -2, 3, 1.00390625F, NAN, INFINITY, 0, 8, 9}, to[9] = {};
  alignas(16) Bfloat16 rounded[8] = {};
  run_grid({1}, {1}, 0, [&] {
    const Pack<float, 8> pack = load_pack<8>(from);
    store_pack(pack, to);
    store_pack(round_pack(pack), rounded);
    for (int k = 0; k < 8; ++k) {
      CHECK(rounded[k] == to_bfloat16(from[k]));
      CHECK((to[k] == from[k] || k == 4));
      CHECK((widen_pack<float>(round_pack(pack))[k] == round_to_bfloat16(from[k]) || k == 4));
    }
  });
  const auto run = [](auto kernel) { run_grid({1}, {1}, 0, kernel); };
  CHECK_THROWS_AS(run([&] { load_pack<4>(from + 1); }), Error);
  CHECK_THROWS_AS(run([&] { store_pack(Pack<float, 4>(), to + 2); }), Error);
  CHECK_THROWS_AS(run([&] { load_pack<2>(from + 1); }), Error);
  CHECK_NOTHROW(run([&] { load_pack<2>(from + 2); }));
  CHECK_NOTHROW(run([&] { load_pack<1>(from + 1); }));
  CHECK(takes_packs<4>(8, from, rounded));
  CHECK(takes_packs<4>(8, from, static_cast<float*>(nullptr)));
  CHECK_FALSE(takes_packs<4>(8, from, rounded + 2));
  CHECK_FALSE(takes_packs<4>(8, from + 1));
  CHECK_FALSE(takes_packs<4>(6, from));
}

}  // namespace
}  // namespace heed
