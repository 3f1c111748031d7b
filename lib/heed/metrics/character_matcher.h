#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "heed/metrics/ngram_matcher.h"

namespace heed {

/// Counts the n-grams of characters that two texts share, all orders at once: where the beginnings of both texts'
/// suffixes stand sorted, an n-gram is a run of neighbours that share their first n characters. Keeps its memory
/// between calls.
class CharacterMatcher {
 public:
  explicit CharacterMatcher(int max_order);

  /// `matches[n - 1]` (n = 1 ... max_order) becomes the number of n-grams that `hypothesis` shares with `reference`,
  /// each at most as often as it is in either.
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
  std::vector<Number> common_;  // of the characters below its size
  std::uint32_t generation_ = 0, count_ = 0;
  GenerationTable<GenerationEntry<Character>> rare_;
  std::vector<std::uint32_t> numbers_;  // the hypothesis, its end, the reference, its end
  std::vector<std::uint64_t> keys_, sorted_;
};

}  // namespace heed
