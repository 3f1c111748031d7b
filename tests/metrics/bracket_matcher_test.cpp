#include "heed/metrics/bracket_matcher.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <string>

#include "heed/base/random.h"

namespace heed {
namespace {

using Pairs = std::vector<std::pair<std::string, std::string>>;

/// Returns how many brackets of `test` are matched, by comparing each pair of brackets.
std::size_t matched_by_pairs(const std::vector<Bracket>& gold, const std::vector<Bracket>& test, bool labelled,
                             const Pairs& equal) {
  const auto are_equal = [&](std::string_view a, std::string_view b) {
    return !labelled || a == b || std::any_of(equal.begin(), equal.end(), [&](const auto& pair) {
      return (a == pair.first && b == pair.second) || (a == pair.second && b == pair.first);
    });
  };
  std::vector<bool> taken(test.size());
  std::size_t count = 0;
  for (const Bracket& bracket : gold) {
    for (std::size_t i = 0; i < test.size(); ++i) {
      if (taken[i] || bracket.start != test[i].start || bracket.end != test[i].end ||
          !are_equal(bracket.label, test[i].label))
        continue;
      taken[i] = true;
      ++count;
      break;
    }
  }
  return count;
}

/// Returns how many brackets of `test` cross one of `gold`, by comparing each pair of brackets.
std::size_t crossing_by_pairs(const std::vector<Bracket>& gold, const std::vector<Bracket>& test) {
  const auto cross = [](const Bracket& a, const Bracket& b) {
    return a.start < b.start && b.start < a.end && a.end < b.end;
  };
  return static_cast<std::size_t>(std::count_if(test.begin(), test.end(), [&](const Bracket& a) {
    return std::any_of(gold.begin(), gold.end(), [&](const Bracket& b) { return cross(a, b) || cross(b, a); });
  }));
}

/// Makes trees at random.
class RandomTrees {
 public:
  explicit RandomTrees(std::uint64_t seed) : stream_(seed, RandomUse::examples) {}

  std::size_t below(std::size_t n) { return stream_.below(n, next_++); }
  /// Returns the brackets of a tree over `words` words. A bracket is in some places repeated with another label.
  std::vector<Bracket> tree(std::size_t words) {
    std::vector<Bracket> out;
    grow(0, words, out);
    return out;
  }

 private:
  void grow(std::size_t start, std::size_t end, std::vector<Bracket>& out) {
    static constexpr std::string_view kLabels[] = {"S", "NP", "ADVP", "PRT", "X"};
    do out.push_back({start, end, kLabels[below(5)]});
    while (below(3) == 0);
    for (std::size_t at = start; end - start > 1 && at < end;) {
      const std::size_t length = 1 + below(std::min(end - at, end - start - 1));
      if (below(4) > 0) grow(at, at + length, out);
      at += length;
    }
  }

  RandomStream stream_;
  std::uint64_t next_ = 0;
};

TEST_CASE("the brackets of random trees are compared as by comparing all pairs of them") {
  // PRT equals two labels that do not equal each other.
  const Pairs equal = {{"ADVP", "PRT"}, {"PRT", "X"}};
  RandomTrees random(1);
  for (int i = 0; i < 300; ++i) {
    const std::size_t words = 1 + random.below(30);
    const std::vector<Bracket> gold = random.tree(words), test = random.tree(words);
    for (const bool labelled : {true, false}) {
      BracketMatcher matcher(labelled, equal);
      CHECK(matcher.matched(gold, test) == matched_by_pairs(gold, test, labelled, equal));
      CHECK(matcher.matched(test, gold) == matched_by_pairs(test, gold, labelled, equal));
      CHECK(matcher.matched(gold, gold) == gold.size());
      CHECK(matcher.crossing(gold, test, words) == crossing_by_pairs(gold, test));
      CHECK(matcher.crossing(gold, gold, words) == 0);
    }
  }
}

// A comparison of all pairs would take minutes.
TEST_CASE("a hundred thousand brackets are compared") {
  constexpr std::size_t kWords = 100'000;
  const Pairs equal;
  BracketMatcher matcher(true, equal);
  std::vector<Bracket> same, nested, flat, pairs;
  for (std::size_t i = 0; i < kWords; ++i) {
    same.push_back({0, kWords, "S"});
    nested.push_back({i, kWords, "S"});
    flat.push_back({i, i + 1, "S"});
    if (i > 0) pairs.push_back({i - 1, i + 1, "S"});
  }
  for (const auto* brackets : {&same, &nested, &flat}) {
    CHECK(matcher.matched(*brackets, *brackets) == kWords);
    CHECK(matcher.crossing(*brackets, *brackets, kWords) == 0);
  }
  CHECK(matcher.matched(nested, flat) == 1);
  CHECK(matcher.crossing(nested, pairs, kWords) == kWords - 2);
  CHECK(matcher.crossing(nested, flat, kWords) == 0);
}

TEST_CASE("trees without brackets have nothing in common") {
  const Pairs equal;
  BracketMatcher matcher(true, equal);
  const std::vector<Bracket> one = {{0, 2, "S"}};
  CHECK(matcher.matched({}, one) == 0);
  CHECK(matcher.matched(one, {}) == 0);
  CHECK(matcher.crossing({}, one, 2) == 0);
  CHECK(matcher.crossing(one, {}, 2) == 0);
}

}  // namespace
}  // namespace heed
