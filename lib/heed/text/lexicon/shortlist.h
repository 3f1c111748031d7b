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

/// How much of a table a shortlist keeps.
struct ShortlistLimits {
  std::int64_t frequent = 100;  ///< target pieces that every line may use
  std::int64_t best = 50;       ///< likeliest target pieces of each source piece
};

/// Writes a lexical shortlist: a first line `heed-shortlist 1`, then lines of three columns with a space between them,
/// which no piece has. The most frequent target pieces have an empty first column, then piece and count; the others are
/// source piece, target piece, probability. Source pieces come by falling count, equal ones in the order of their
/// bytes, and so do targets of equal probability.
void write_shortlist(std::ostream& out, const PieceText& source, const PieceText& target, const LexicalTable& table,
                     const ShortlistLimits& limits);

/// For each line the target pieces that its translation may consist of (Jean et al. 2015, section 3.2).
class Shortlist {
 public:
  /// Reads a file of write_shortlist(). Lines with pieces that the vocabularies lack are counted and left out. Throws
  /// Error with the line where it is malformed, and where no line with a source piece is left.
  static Shortlist read(const std::string& path, const Vocabulary& source, const Vocabulary& target);

  /// The ids that a source may become, ascending: the reserved ones, the frequent ones, those of its pieces, and its
  /// pieces themselves where they are target pieces too. Depends on which ids are there alone.
  void targets_of(std::span<const std::int32_t> source, std::vector<std::int32_t>& out) const;

  std::int64_t lines() const { return lines_; }            ///< of the file, but for the first
  std::int64_t foreign_lines() const { return foreign_; }  ///< with pieces that the vocabularies lack
  const Position& first_foreign() const { return first_foreign_; }

 private:
  std::int32_t target_size_ = 0;
  std::vector<std::int32_t> always_, targets_;
  std::vector<std::int64_t> begins_;  // of each source id's targets, and the end of the last
  std::int64_t lines_ = 0, foreign_ = 0;
  Position first_foreign_;
};

}  // namespace heed
