#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace heed {

/// Counts the edits of Translation Edit Rate (Snover et al. 2006): insertions, deletions and substitutions of words,
/// and shifts of word sequences to another place. Tercom's greedy search finds the shifts: the search makes the best
/// shift again and again until no shift lowers the number of edits. The limits are those of sacreBLEU 2.6: a shift
/// moves at most 10 words over at most 50 words, the edit distance is computed within 25 words of the diagonal, and the
/// search ends after 1,000 candidate shifts, without making the best of the last round. Keeps its memory between calls.
class TranslationEdits {
 public:
  /// Returns the number of edits that turn `hypothesis` into `reference`. Words are given as numbers; equal numbers are
  /// equal words.
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
  // The hypothesis after the shifts made so far, and the hypothesis after one more shift.
  std::vector<std::uint32_t> words_, shifted_;
  // [words + 1] The columns of each row that are inside the beam: the first column, and the column behind the last.
  std::vector<std::pair<std::int32_t, std::int32_t>> beam_;
  // [words + 1, columns()] The edit distances for words_ and for shifted_.
  std::vector<std::int32_t> cells_, shifted_cells_;
  // [reference] The hypothesis word that each reference word is aligned with; -1 means before the first word.
  std::vector<std::int32_t> aligned_;
  // [words + 1] and [reference + 1] For each position of a sequence, how many words before the position have an error.
  std::vector<std::int32_t> wrong_words_, wrong_references_;
  std::int64_t candidates_ = 0;
};

}  // namespace heed
