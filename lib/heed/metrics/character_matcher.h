#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "heed/metrics/ngram_matcher.h"

namespace heed {

/// Counts the n-grams of characters that two texts share, for n = 1 ... max_order in one pass.
///
/// The idea: at each place of both texts begins a string of max_order characters (shorter at the end of a text). When
/// all these strings are sorted, equal n-grams are neighbours: an n-gram is a run of strings that have the same first n
/// characters. A run with h strings of the hypothesis and r strings of the reference gives min(h, r) matches. Example
/// with max_order 2, hypothesis "ab" and reference "aab" ($ and # are the ends of the texts):
///
///     aa  reference     1-grams: the run "a" has h = 1, r = 2; the run "b" has h = 1, r = 1: 2 matches
///     ab  hypothesis
///     ab  reference     2-grams: the run "ab" has h = 1, r = 1; all other runs have one string: 1 match
///     b$  hypothesis
///     b#  reference
///
/// A CharacterMatcher reuses its allocated memory for the next pair of texts.
class CharacterMatcher {
 public:
  explicit CharacterMatcher(int max_order);

  /// Sets `matches[n - 1]` (n = 1 ... max_order) to the number of n-grams that `hypothesis` shares with `reference`. An
  /// n-gram that is repeated counts min(h, r) times, where h and r are its counts in the two texts.
  void match(std::span<const char32_t> hypothesis, std::span<const char32_t> reference,
             std::span<std::int64_t> matches);

 private:
  struct Character {
    std::uint32_t value = 0;
    std::uint64_t hash() const;
    bool operator==(const Character& other) const = default;
  };
  struct Number {
    std::uint32_t generation = 0, number = 0;
  };

  void number(std::span<const char32_t> text, std::uint32_t end);
  void sort_packed(int bits);
  void match_packed(std::size_t hypothesis, int bits, std::span<std::int64_t> matches);
  void match_any(std::size_t hypothesis, std::span<std::int64_t> matches);

  std::size_t max_order_;
  // The ids of the characters whose code point is below kCommon, indexed by the code point.
  std::vector<Number> common_;
  std::uint32_t generation_ = 0, count_ = 0;
  GenerationTable<GenerationEntry<Character>> rare_;
  // The two texts as one sequence of ids: the ids of the hypothesis' characters, the id of the hypothesis' end, the ids
  // of the reference's characters, the id of the reference's end.
  std::vector<std::uint32_t> numbers_;
  std::vector<std::uint64_t> keys_, sorted_;
};

}  // namespace heed
