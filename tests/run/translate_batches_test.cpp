#include "heed/run/translate_batches.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <numeric>

using namespace heed;

namespace {

/// Returns the number of lines of each batch, and checks that the batches are all lines in their order.
std::vector<std::size_t> sizes(std::span<const std::int64_t> tokens, const LineBatchLimits& limits, int threads) {
  std::vector<std::size_t> out;
  std::size_t next = 0;
  for (const auto& [begin, end] : cut_into_batches(tokens, limits, threads)) {
    CHECK(begin == next);
    CHECK(end > begin);
    out.push_back(end - begin);
    next = end;
  }
  CHECK(next == tokens.size());
  return out;
}

}  // namespace

TEST_CASE("a few lines are spread over the threads") {
  const std::vector<std::int64_t> four(4, 10);
  CHECK(sizes(four, {128, 256}, 1) == std::vector<std::size_t>{4});
  CHECK(sizes(four, {128, 256}, 2) == std::vector<std::size_t>{2, 2});
  CHECK(sizes(four, {128, 256}, 4) == std::vector<std::size_t>{1, 1, 1, 1});
  CHECK(sizes({}, {128, 256}, 2).empty());
}

TEST_CASE("a batch keeps both limits, but a line of more tokens is a batch of its own") {
  const std::vector<std::int64_t> long_first = {300, 20, 20, 20, 20, 20, 20};
  const auto batches = cut_into_batches(long_first, {128, 60}, 1);
  CHECK(batches.front() == std::pair<std::size_t, std::size_t>{0, 1});
  for (const auto& [begin, end] : batches)
    CHECK((end == begin + 1 ||
           std::accumulate(long_first.begin() + static_cast<std::ptrdiff_t>(begin),
                           long_first.begin() + static_cast<std::ptrdiff_t>(end), std::int64_t{0}) <= 60));
  CHECK(std::ranges::max(sizes(std::vector<std::int64_t>(100, 1), {8, 1000}, 1)) <= 8);
  // The share of a batch is 59 tokens here, and 45 + 20 / 2 are less, but 45 + 20 are more than a batch may have.
  CHECK(sizes(std::vector<std::int64_t>{45, 20, 20, 20, 14}, {128, 60}, 1) == std::vector<std::size_t>{1, 3, 1});
  // The share of a batch is 15 tokens here, more than a batch of six short lines has.
  std::vector<std::int64_t> short_last(4, 10);
  short_last.resize(24, 1);
  CHECK(std::ranges::max(sizes(short_last, {6, 1000}, 1)) == 6);
}

TEST_CASE("the memory of a batch of images is limited, however few their tokens are") {
  CHECK(most_images(std::int64_t{1024} * 1024 * 3, false) == 5);
  CHECK(most_images(std::int64_t{1024} * 1024 * 3, true) == 21);
  CHECK(most_images(std::int64_t{4096} * 4096 * 3, false) == 1);
  CHECK(most_images(32 * 32 * 3, false) > 128);
}

TEST_CASE("batches of many lines have about the same number of tokens, but for a small one at the end") {
  std::vector<std::int64_t> tokens;
  for (int i = 0; i < 1000; ++i) tokens.push_back(50 - i / 25);
  const std::int64_t total = std::accumulate(tokens.begin(), tokens.end(), std::int64_t{0});
  const auto batches = cut_into_batches(tokens, {128, 1024}, 3);
  CHECK(batches.size() == 31);
  std::vector<std::int64_t> sums;
  for (const auto& [begin, end] : batches)
    sums.push_back(std::accumulate(tokens.begin() + static_cast<std::ptrdiff_t>(begin),
                                   tokens.begin() + static_cast<std::ptrdiff_t>(end), std::int64_t{0}));
  CHECK(sums.back() < total / 31);
  sums.pop_back();
  CHECK(std::ranges::min(sums) > total / 31);
  CHECK(std::ranges::max(sums) <= 1024);
}
