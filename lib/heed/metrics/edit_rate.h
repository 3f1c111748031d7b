#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace heed {

/// The edits of Translation Edit Rate (Snover et al. 2006): word insertions, deletions, substitutions and shifts of
/// word sequences, found by Tercom's greedy search within the limits sacreBLEU 2.6 sets: shifts of at most 10 words
/// over at most 50, an edit distance within 25 words of the diagonal, 1,000 candidate shifts (the shift found when they
/// run out is not made). Keeps its memory between calls.
class TranslationEdits {
 public:
  /// Edits from `hypothesis` to `reference`; equal numbers are equal words.
  std::int64_t count(std::span<const std::uint32_t> hypothesis, std::span<const std::uint32_t> reference);

 private:
  enum class Edit : std::uint8_t { none, match, substitute, remove, insert };
  struct Shift {
    std::int32_t gain = 0, length = 0, start = 0, target = 0;
  };

  std::size_t columns() const { return reference_.size() + 1; }
  void set_beam();
  void distance_row(const std::vector<std::uint32_t>& words, std::size_t i, std::vector<std::int32_t>& cells) const;
  std::int32_t align();
  std::int32_t shifted_distance(std::size_t first);
  void shift(std::size_t start, std::size_t length, std::size_t target);
  bool best_shift(std::int32_t distance, Shift& best);

  std::span<const std::uint32_t> reference_;
  std::vector<std::uint32_t> words_, shifted_;               // the hypothesis as it is by now, and with one more shift
  std::vector<std::pair<std::int32_t, std::int32_t>> beam_;  // [words + 1] first column and the one behind the last
  std::vector<std::int32_t> cells_, shifted_cells_;          // [words + 1, columns()] edit distances of both
  std::vector<std::int32_t> aligned_;  // [reference] the word of the hypothesis, -1 before the first
  std::vector<std::int32_t> wrong_words_, wrong_references_;  // [+ 1] errors before each position
  std::int64_t candidates_ = 0;
};

}  // namespace heed
