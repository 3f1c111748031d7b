#pragma once

#include <cstdint>
#include <ostream>
#include <span>
#include <string>
#include <vector>

#include "heed/base/error.h"
#include "heed/text/lexicon/lexical_table.h"
#include "heed/text/strings/vocabulary.h"

namespace heed {

/// How many target pieces a shortlist offers the translator.
struct ShortlistLimits {
  std::int64_t frequent = 100;  ///< this many of the most frequent target pieces are allowed in every translation
  std::int64_t best = 50;       ///< for each source piece, this many target pieces of the highest probability
};

/// Writes a lexical shortlist to `out`. The first line is `heed-shortlist 1`; the other lines have three columns,
/// separated by spaces (no piece holds a space). The most frequent target pieces come first: an empty column, the
/// piece, its count. Then the lexicon follows: source piece, target piece, probability. Source pieces are sorted by
/// falling count, and pieces of equal count by their bytes; the target pieces of a source piece are sorted by falling
/// probability, and then in the order of the most frequent pieces.
void write_shortlist(std::ostream& out, const PieceText& source, const PieceText& target, const LexicalTable& table,
                     const ShortlistLimits& limits);

/// Lists, for each source line, the target pieces that its translation may consist of (Jean et al. 2015, section 3.2),
/// so that the output layer need not compute the scores of all pieces.
class Shortlist {
 public:
  /// Reads a file that write_shortlist() wrote. Lines with a piece that one of the vocabularies lacks are counted and
  /// skipped. Throws Error with the line if a line is malformed, and Error if no line with a source piece remains.
  static Shortlist read(const std::string& path, const Vocabulary& source, const Vocabulary& target);

  /// Replaces `out` by the target ids, ascending, that the translation of `source` may consist of: the reserved ids,
  /// the most frequent target pieces, the target pieces of each source piece, and each source piece itself if the
  /// target vocabulary has it. The order and number of the ids in `source` do not matter.
  void targets_of(std::span<const std::int32_t> source, std::vector<std::int32_t>& out) const;

  std::int64_t lines() const { return lines_; }            ///< number of lines of the file, without the first line
  std::int64_t foreign_lines() const { return foreign_; }  ///< number of lines with a piece that the vocabularies lack
  /// The first line with a piece that the vocabularies lack.
  const Position& first_foreign() const { return first_foreign_; }

 private:
  std::int32_t target_size_ = 0;
  std::vector<std::int32_t> always_, targets_;
  // Where the entries of each source id begin in targets_; then the number of all entries.
  std::vector<std::int64_t> begins_;
  std::int64_t lines_ = 0, foreign_ = 0;
  Position first_foreign_;
};

}  // namespace heed
