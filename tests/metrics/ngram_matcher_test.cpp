#include "heed/metrics/ngram_matcher.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <map>
#include <string>

#include "heed/base/random.h"
#include "heed/metrics/character_matcher.h"

using namespace heed;

namespace {

using Tokens = std::vector<std::string_view>;
using Counts = std::map<Tokens, std::int64_t>;

/// Counts the n-grams in the simplest way: by the text of each n-gram.
Counts count(const Tokens& tokens, std::size_t max_order) {
  Counts counts;
  for (std::size_t n = 1; n <= max_order; ++n)
    for (std::size_t i = 0; i + n <= tokens.size(); ++i)
      ++counts[Tokens(tokens.begin() + static_cast<std::ptrdiff_t>(i),
                      tokens.begin() + static_cast<std::ptrdiff_t>(i + n))];
  return counts;
}

std::vector<std::int64_t> slow_match(const Tokens& hypothesis, const std::vector<Tokens>& references,
                                     std::size_t max_order) {
  Counts best;
  for (const Tokens& reference : references)
    for (const auto& [ngram, times] : count(reference, max_order)) best[ngram] = std::max(best[ngram], times);
  std::vector<std::int64_t> matches(max_order);
  for (const auto& [ngram, times] : count(hypothesis, max_order))
    if (const auto found = best.find(ngram); found != best.end())
      matches[ngram.size() - 1] += std::min(times, found->second);
  return matches;
}

}  // namespace

TEST_CASE("matches are those of counting every n-gram by its words") {
  // A small set of words gives many repeated n-grams. The lengths of the words are around the eight bytes that the hash
  // reads at once.
  const std::vector<std::string> words = {"a", "b", "", "aaaaaaaa", "aaaaaaab", "aaaaaaaaa", "é", std::string(40, 'x')};
  std::uint64_t drawn = 0;
  const RandomStream random(3, RandomUse::sampling);
  const auto draw = [&](std::uint64_t below) { return random.below(below, drawn++); };
  const auto sentence = [&](std::uint64_t longest) {
    Tokens tokens;
    for (std::uint64_t left = draw(longest + 1); left > 0; --left) tokens.push_back(words[draw(8)]);
    return tokens;
  };
  for (std::size_t max_order : {1, 4, 9}) {
    NgramMatcher matcher(static_cast<int>(max_order));
    for (int round = 0; round < 100; ++round) {
      std::vector<Tokens> references(1 + draw(3));
      matcher.clear();
      for (Tokens& reference : references) matcher.add_reference(reference = sentence(round == 99 ? 400 : 20));
      for (int system = 0; system < 2; ++system) {
        const Tokens hypothesis = sentence(20);
        std::vector<std::int64_t> matches(max_order);
        matcher.match(hypothesis, matches);
        CHECK(matches == slow_match(hypothesis, references, max_order));
      }
    }
  }
}

TEST_CASE("characters match as tokens of one character do") {
  std::uint64_t drawn = 0;
  const RandomStream random(4, RandomUse::sampling);
  const auto draw = [&](std::uint64_t below) { return random.below(below, drawn++); };
  // Few characters and short n-grams are packed into 64-bit keys; more characters, longer n-grams and the last, very
  // long text are not.
  struct Case {
    int max_order;
    std::uint64_t characters, longest;
  };
  for (const Case& test :
       {Case{6, 5, 40}, {6, 300, 200}, {8, 100, 90}, {8, 200, 300}, {9, 3, 60}, {1, 7, 20}, {2, 2, 40000}}) {
    CAPTURE(test.max_order);
    CAPTURE(test.characters);
    CharacterMatcher matcher(test.max_order);
    const auto orders = static_cast<std::size_t>(test.max_order);
    for (int round = 0; round < (test.longest > 1000 ? 1 : 60); ++round) {
      std::u32string texts[2];
      std::vector<std::string> spelled[2];
      for (int side : {0, 1})
        for (std::uint64_t left = test.longest > 1000 ? test.longest : draw(test.longest); left > 0; --left) {
          texts[side] += static_cast<char32_t>(draw(3) * 0x7C0 + draw(test.characters) + 1);
          spelled[side].push_back(std::to_string(std::uint32_t{texts[side].back()}));
        }
      std::vector<std::int64_t> got(orders, -1);
      matcher.match(texts[0], texts[1], got);
      NgramMatcher tokens(test.max_order);
      tokens.add_reference(Tokens(spelled[1].begin(), spelled[1].end()));
      std::vector<std::int64_t> expected(orders);
      tokens.match(Tokens(spelled[0].begin(), spelled[0].end()), expected);
      CHECK(got == expected);
    }
  }
}

TEST_CASE("equal tokens get equal numbers until they are forgotten") {
  TokenNumbers numbers;
  std::vector<std::uint32_t> got;
  {
    // The text of the tokens is freed before the next call.
    const std::string gone = "b a";
    numbers.number(Tokens{std::string_view(gone).substr(0, 1), std::string_view(gone).substr(2, 1)}, got);
  }
  numbers.number(Tokens{"a", "x", "a"}, got);
  CHECK(got.front() == got.back());
  CHECK(got[1] == 2);
  numbers.clear();
  numbers.number(Tokens{"x"}, got);
  CHECK(got == std::vector<std::uint32_t>{0});
}
