#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace heed {

/// Counts the edits of Translation Edit Rate (Snover et al. 2006): insertions, deletions and substitutions of words,
/// and shifts of word sequences to another place. The greedy search of Tercom (the original program) finds the shifts:
/// the search makes the best shift again and again until no shift lowers the number of edits. The limits are those of
/// sacreBLEU 2.6: a shift moves at most 10 words over at most 50 words, the edit distance is computed within 25 words
/// of the diagonal, and the search ends after 1,000 candidate shifts, without making the best shift of the last round.
/// A TranslationEdits reuses its allocated memory for the next sentence.
class TranslationEdits {
 public:
  /// Returns the number of edits that turn `hypothesis` into `reference`. Each word is given as an id; equal ids are
  /// equal words.
  std::int64_t count(std::span<const std::uint32_t> hypothesis, std::span<const std::uint32_t> reference);

 private:
  enum class Edit : std::uint8_t { none, match, substitute, remove, insert };
  struct Shift {
    std::int32_t gain = 0, length = 0, start = 0, target = 0;
  };

  /// Where the cells of a row of the table begin: the column of the first of them, and its index among all cells.
  struct Row {
    std::int32_t first;
    std::size_t start;
  };

  std::size_t columns() const { return reference_.size() + 1; }
  /// Returns the index of a cell, which the row must have.
  std::size_t index(std::size_t row, std::size_t column) const {
    return rows_[row].start + column - static_cast<std::size_t>(rows_[row].first);
  }
  void set_beam();
  void distance_row(const std::vector<std::uint32_t>& words, std::size_t i, std::vector<std::int32_t>& cells) const;
  std::int32_t align();
  std::int32_t shifted_distance(std::size_t first);
  void shift(std::size_t start, std::size_t length, std::size_t target);
  bool best_shift(std::int32_t distance, Shift& best);

  std::span<const std::uint32_t> reference_;
  // The ids of the hypothesis' words: `words_` after the shifts made so far, `shifted_` after one more shift that is
  // being tried.
  std::vector<std::uint32_t> words_, shifted_;
  // For each row of the edit-distance table, the range of columns that are computed: the first column, and the column
  // behind the last. Shape: [words + 1].
  std::vector<std::pair<std::int32_t, std::int32_t>> beam_;
  // The tables of edit distances between the reference and words_, and between the reference and shifted_, row after
  // row. A row has the cells of its beam and those that the next row reads. Both tables have the same rows_, and one
  // more, which begins at their end.
  std::vector<Row> rows_;
  std::vector<std::int32_t> cells_, shifted_cells_;
  // For each reference word, the index of the hypothesis word that it is aligned with. A reference word that the
  // hypothesis lacks has the index of the hypothesis word before its place; -1 means before the first word. Shape:
  // [words of the reference].
  std::vector<std::int32_t> aligned_;
  // wrong_words_[i] is the number of errors among the first i words of the hypothesis, and wrong_references_[j] the
  // number of errors among the first j words of the reference.
  std::vector<std::int32_t> wrong_words_, wrong_references_;
  std::int64_t candidates_ = 0;
};

}  // namespace heed
