#include "heed/train/gradient_sum.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <span>
#include <vector>

#include "heed/base/random.h"

using namespace heed;

namespace {

constexpr std::int64_t kSize = 2 * kSumBlock + 48;

ParameterLayout layout_of(std::int64_t size) {
  ParameterLayout layout;
  layout.add("weight", {size}, Initialiser::zeros());
  return layout;
}

/// Element i of a leaf's gradient. The numbers have very different sizes, so that every order of adding rounds in
/// another way.
float gradient(std::int64_t leaf, std::int64_t i) {
  const RandomStream stream(5, RandomUse::initialisation, static_cast<std::uint64_t>(leaf));
  return static_cast<float>(stream.normal(static_cast<std::uint64_t>(i)) *
                            std::exp2(static_cast<double>((i + 7 * leaf) % 20)));
}

/// The sum of the leaves begin ... begin + width - 1 of `leaves`, where width is a power of two, as the tree adds it
/// up.
float tree_sum(std::int64_t begin, std::int64_t width, std::int64_t leaves, std::int64_t i) {
  if (width == 1) return gradient(begin, i);
  const float left = tree_sum(begin, width / 2, leaves, i);
  return begin + width / 2 < leaves ? left + tree_sum(begin + width / 2, width / 2, leaves, i) : left;
}

/// Computes a leaf, without closing it.
void compute(GradientSum& sum, std::int64_t leaf) {
  const std::span<float> buffer = sum.open(leaf).flat();
  REQUIRE(std::ranges::all_of(buffer, [](float element) { return element == 0; }));
  for (std::int64_t i = 0; i < kSize; ++i) buffer[static_cast<std::size_t>(i)] += gradient(leaf, i);
}

}  // namespace

TEST_CASE("gradient sum: the tree decides the bits, for any number of leaves and threads in any order") {
  const ParameterLayout layout = layout_of(kSize);
  const std::int64_t buffer = layout.storage_size() * static_cast<std::int64_t>(sizeof(float));
  for (const std::int64_t leaves : {1, 2, 3, 4, 5, 6, 7, 8, 13, 16}) {
    CAPTURE(leaves);
    std::vector<float> expected;
    for (std::int64_t i = 0; i < kSize; ++i) expected.push_back(tree_sum(0, 16, leaves, i));
    for (const int threads : {1, 2, 3, 8}) {
      CAPTURE(threads);
      GradientSum sum(layout, threads, no_other_ranks());
      for (int round = 0; round < 2; ++round) {
        sum.start(leaves);
        // Opens a leaf for each thread, and closes them in the order, or against it.
        for (std::int64_t begin = 0; begin < leaves; begin += threads) {
          const std::int64_t end = std::min(begin + threads, leaves);
          for (std::int64_t leaf = begin; leaf < end; ++leaf) compute(sum, leaf);
          for (std::int64_t k = 0; k < end - begin; ++k) sum.close(round == 0 ? begin + k : end - 1 - k);
        }
        for (std::int64_t begin = 0; begin < kSize; begin += kSumBlock)
          sum.add_up(Slice{begin, std::min(begin + kSumBlock, kSize)});
        const std::span<const float> result = sum.result().flat();
        CHECK(std::equal(expected.begin(), expected.end(), result.begin()));
        sum.clear({0, layout.storage_size()});
      }
      const auto depth = static_cast<std::int64_t>(std::ceil(std::log2(static_cast<double>(leaves))));
      CHECK(sum.memory() <= buffer * std::max<std::int64_t>(2 * threads, threads + depth + 1));
      CHECK(sum.memory() <= buffer * std::max<std::int64_t>(leaves, 1));
    }
  }
}
