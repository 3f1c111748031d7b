#include "heed/ops/gemm/prepared_weights.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <numeric>
#include <thread>
#include <vector>

#include "heed/ops/gemm/gemm_bfloat16.h"

using namespace heed;

namespace {

/// Two weights, [40, 48] and [48, 40], one after the other, as the parameters of a model are stored.
struct Parameters {
  Parameters() : values(2 * 40 * 48) { std::iota(values.begin(), values.end(), -500.0F); }

  std::vector<float> values;
  GemmOperand<float> first{values.data(), 48}, second{values.data() + 40 * 48, 40};
};

/// Returns whether `tiles` are those of the matrix B [k, n] as it is now.
bool are_tiles_of(const std::uint32_t* tiles, std::int64_t k, std::int64_t n, GemmOperand<float> b) {
  Arena arena;
  return std::equal(tiles, tiles + bfloat16_tile_words(k, n), bfloat16_tiles(arena, k, n, b).tiles);
}

bool cannot_multiply_bfloat16() {
  if (!has_fast_bfloat16()) MESSAGE("skipped: this CPU does not multiply bfloat16 numbers");
  return !has_fast_bfloat16();
}

}  // namespace

TEST_CASE("a weight is prepared once in an update, and anew in the next one") {
  if (cannot_multiply_bfloat16()) return;
  Parameters parameters;
  PreparedWeights weights;
  weights.begin(parameters.values);
  const std::uint32_t* const tiles = weights.tiles(40, 48, parameters.first);
  REQUIRE(tiles);
  CHECK(are_tiles_of(tiles, 40, 48, parameters.first));
  const float before = parameters.values[7];
  parameters.values[7] = 1000;
  CHECK(weights.tiles(40, 48, parameters.first) == tiles);
  CHECK_FALSE(are_tiles_of(tiles, 40, 48, parameters.first));
  weights.begin(parameters.values);
  CHECK(weights.tiles(40, 48, parameters.first) == tiles);  // in the same memory
  CHECK(are_tiles_of(tiles, 40, 48, parameters.first));
  // A validation has other parameters, in other memory.
  Parameters averages;
  weights.begin(averages.values);
  CHECK(averages.values[7] == before);
  CHECK(are_tiles_of(weights.tiles(40, 48, averages.first), 40, 48, averages.first));
}

TEST_CASE("matrices in the same memory are told apart, and what is not a parameter is not kept") {
  if (cannot_multiply_bfloat16()) return;
  Parameters parameters;
  PreparedWeights weights;
  weights.begin(parameters.values);
  const GemmOperand<float> transposed{parameters.values.data(), 48, true}, narrow{parameters.values.data(), 48};
  CHECK(are_tiles_of(weights.tiles(40, 48, parameters.first), 40, 48, parameters.first));
  CHECK(are_tiles_of(weights.tiles(48, 40, parameters.second), 48, 40, parameters.second));
  CHECK(are_tiles_of(weights.tiles(48, 40, transposed), 48, 40, transposed));
  CHECK(are_tiles_of(weights.tiles(40, 16, narrow), 40, 16, narrow));
  CHECK(weights.memory() ==
        4 * (bfloat16_tile_words(40, 48) + 2 * bfloat16_tile_words(48, 40) + bfloat16_tile_words(40, 16)));
  const std::vector<float> other(40 * 48);
  CHECK(weights.tiles(40, 48, {other.data(), 48}) == nullptr);
  CHECK(weights.tiles(40, 48, {parameters.values.data() + parameters.values.size(), 48}) == nullptr);
  Arena arena;
  CpuContext device{arena, Precision::bfloat16, nullptr, &weights};
  CHECK(prepare_weight(device, 40, 48, parameters.first).tiles == weights.tiles(40, 48, parameters.first));
  CHECK(are_tiles_of(prepare_weight(device, 40, 48, GemmOperand<float>{other.data(), 48}).tiles, 40, 48,
                     {other.data(), 48}));
  device.precision = Precision::float32;
  CHECK(prepare_weight(device, 40, 48, parameters.first).tiles == nullptr);
}

TEST_CASE("any number of threads may ask for a weight at the same time") {
  if (cannot_multiply_bfloat16()) return;
  Parameters parameters;
  PreparedWeights weights;
  for (int update = 0; update < 20; ++update) {
    parameters.values[0] = static_cast<float>(update);
    weights.begin(parameters.values);
    std::vector<char> right(4);
    std::vector<std::thread> threads;
    for (char& mine : right)
      threads.emplace_back([&] {
        mine = are_tiles_of(weights.tiles(40, 48, parameters.first), 40, 48, parameters.first) &&
               are_tiles_of(weights.tiles(48, 40, parameters.second), 48, 40, parameters.second);
      });
    for (std::thread& thread : threads) thread.join();
    CHECK(std::ranges::count(right, 1) == 4);
  }
}
