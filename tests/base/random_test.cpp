#include "heed/base/random.h"

#include <doctest/doctest.h>

#include <cmath>
#include <numeric>
#include <set>
#include <vector>

using namespace heed;

TEST_CASE("philox gives the known answers of its authors' Random123 test vectors") {
  CHECK(philox({0, 0}, {0, 0, 0, 0}) == std::array<std::uint32_t, 4>{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8});
  CHECK(philox({0xffffffff, 0xffffffff}, {0xffffffff, 0xffffffff, 0xffffffff, 0xffffffff}) ==
        std::array<std::uint32_t, 4>{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd});
  CHECK(philox({0xa4093822, 0x299f31d0}, {0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344}) ==
        std::array<std::uint32_t, 4>{0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1});
}

TEST_CASE("streams of different uses, updates and seeds differ, equal ones agree") {
  const RandomStream a(1, RandomUse::dropout, 5, 2);
  CHECK(a.words(7) == RandomStream(1, RandomUse::dropout, 5, 2).words(7));
  CHECK(a.words(7) != RandomStream(2, RandomUse::dropout, 5, 2).words(7));
  CHECK(a.words(7) != RandomStream(1, RandomUse::shuffle, 5, 2).words(7));
  CHECK(a.words(7) != RandomStream(1, RandomUse::dropout, 6, 2).words(7));
  CHECK(a.words(7) != RandomStream(1, RandomUse::dropout, 5, 3).words(7));
}

TEST_CASE("uniform, normal and below have the moments they should") {
  const RandomStream stream(42, RandomUse::initialisation);
  constexpr int n = 100000;
  double sum = 0, normal_sum = 0, squares = 0;
  std::vector<int> bins(7);
  for (int i = 0; i < n; ++i) {
    const auto at = static_cast<std::uint64_t>(i);
    sum += stream.uniform(at);
    normal_sum += stream.normal(at);
    squares += stream.normal(at) * stream.normal(at);
    ++bins[stream.below(7, at)];
  }
  CHECK(sum / n == doctest::Approx(0.5).epsilon(0.01));
  CHECK(std::abs(normal_sum / n) < 0.02);
  CHECK(squares / n == doctest::Approx(1).epsilon(0.02));
  for (int bin : bins) CHECK(bin == doctest::Approx(n / 7.0).epsilon(0.05));
}

TEST_CASE("a shuffle is a permutation and moves things") {
  std::vector<int> items(1000);
  std::iota(items.begin(), items.end(), 0);
  shuffle(items, RandomStream(1, RandomUse::shuffle, 3));
  CHECK(std::set<int>(items.begin(), items.end()).size() == 1000);
  int fixed = 0;
  for (int i = 0; i < 1000; ++i) fixed += items[static_cast<std::size_t>(i)] == i;
  CHECK(fixed < 10);
}
