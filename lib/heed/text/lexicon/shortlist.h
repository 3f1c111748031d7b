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

/// The limits on what a shortlist file lists: target pieces for all sentences, and target pieces for each source piece.
struct ShortlistLimits {
  std::int64_t frequent = 100;  ///< the number of most frequent target pieces, which every translation may use
  std::int64_t best = 50;       ///< the number of target pieces for each source piece: those of the highest probability
};

/// Writes a lexical shortlist to `out`. The first line is `heed-shortlist 1`; all other lines have three columns,
/// separated by spaces (no piece holds a space). The most frequent target pieces come first, in lines with an empty
/// column, the target piece, and its count. Then the lexicon follows, in lines with a source piece, a target piece, and
/// its probability. Source pieces are sorted by falling count, and pieces of equal count by their bytes; the target
/// pieces of one source piece are sorted by falling probability, and target pieces of equal probability by falling
/// count.
void write_shortlist(std::ostream& out, const PieceText& source, const PieceText& target, const LexicalTable& table,
                     const ShortlistLimits& limits);

/// Lists, for each source line, the target pieces that a translation of this line may use (Jean et al. 2015,
/// section 3.2), so that the output layer computes scores for these pieces only.
class Shortlist {
 public:
  /// Reads a shortlist file that write_shortlist() wrote. A line with a piece that its vocabulary (source or target)
  /// lacks is counted and skipped. Throws Error with the line if a line is malformed, and Error if no line with a known
  /// source piece and a known target piece remains.
  static Shortlist read(const std::string& path, const Vocabulary& source, const Vocabulary& target);

  /// Replaces `out` by the ids of all target pieces that a translation of `source` (the ids of a source line) may use,
  /// in ascending order: the reserved ids, the most frequent target pieces, the shortlist's target pieces for each
  /// source piece, and each source piece itself if the target vocabulary has it. The order of the ids in `source`, and
  /// how often an id occurs in `source`, do not matter.
  void targets_of(std::span<const std::int32_t> source, std::vector<std::int32_t>& out) const;

  std::int64_t lines() const { return lines_; }            ///< how many lines the file has behind its first line
  std::int64_t foreign_lines() const { return foreign_; }  ///< how many lines have a piece that the vocabularies lack
  /// Returns the position of the first line of the shortlist file with a piece that the vocabularies lack.
  const Position& first_foreign() const { return first_foreign_; }

 private:
  std::int32_t target_size_ = 0;
  std::vector<std::int32_t> always_, targets_;
  // For each source id, the index in targets_ at which the target ids of this source piece begin; and, as the last
  // element, the size of targets_.
  std::vector<std::int64_t> begins_;
  std::int64_t lines_ = 0, foreign_ = 0;
  Position first_foreign_;
};

}  // namespace heed
