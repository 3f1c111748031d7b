#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "heed/text/unigram/piece_trie.h"
#include "heed/text/unigram/sentencepiece_model.h"

namespace heed {

struct SubwordSampler;

/// One piece of a segmentation of a text. `piece` is the piece's index in SentencePieceModel::pieces (or the index of
/// the unknown piece); `end` is the byte offset in the text at which the piece ends. The piece begins where the piece
/// before it ends.
struct PieceSpan {
  std::int32_t piece;
  std::uint32_t end;
};

/// A segmentation of a text into pieces, and its score: the logarithm of its probability.
struct PiecePath {
  std::vector<PieceSpan> spans;
  float score = 0;
};

/// Cuts text into pieces with a unigram language model (Kudo 2018, "Subword regularization"). Every piece has a score,
/// the logarithm of its probability; the score of a segmentation is the sum of the scores of its pieces, and the best
/// segmentation has the highest score. Example: with the scores un -3, able -4, a -5 and ble -6, the text "unable" is
/// cut into un + able (-7) and not into un + a + ble (-14).
///
/// A character that no piece covers becomes the unknown piece, whose score is 10 below the lowest score of a normal
/// piece. In models that heed has learnt, user-defined pieces are cut out before the search; in SentencePiece's models
/// they take part in the search with a small positive score, as in SentencePiece. Sums are 32-bit floats, added in the
/// order of SentencePiece 0.2.3 and with its rule for equal sums, so that the results are the same. Immutable; any
/// number of threads may use one model.
class UnigramModel {
 public:
  explicit UnigramModel(const SentencePieceModel& model);

  /// Cuts the normalised text `text` into pieces with the highest sum of scores (Viterbi algorithm), and replaces
  /// `spans` by these pieces. `before` is the score of the part of the line that precedes `text`. Returns `before` plus
  /// the score of the segmentation.
  float segment(std::string_view text, std::vector<PieceSpan>& spans, float before = 0) const;
  /// Replaces `spans` by the best segmentation of `text` into pieces, computed with 64-bit sums. Returns the margin: by
  /// how much its score exceeds the score of the second-best segmentation (infinite if the text has only one
  /// segmentation). If the margin is larger than all rounding errors of 32-bit sums, segment() gives the same
  /// segmentation.
  double segment_with_margin(std::string_view text, std::vector<PieceSpan>& spans) const;
  /// Returns the score that segment() uses for the piece with the index `piece` in SentencePieceModel::pieces.
  float score(std::int32_t piece) const {
    return piece == unknown_ ? unknown_score_ : scores_[static_cast<std::size_t>(piece)];
  }
  /// Returns whether the scores of all pieces are so small that a text of 1,000 bytes never reaches the limit at which
  /// segment() resets its sum of scores to 0.
  bool has_small_scores() const { return largest_score_ < 40; }
  /// Returns the `count` segmentations of `text` with the highest scores, the best first. The method is an A* search
  /// from the end of the text, with the Viterbi scores as its heuristic. As in SentencePiece, a search that exceeds its
  /// limits continues with the most promising partial segmentations only, or returns the best segmentation only.
  std::vector<PiecePath> n_best(std::string_view text, int count) const;
  /// Returns a random segmentation of `text`. The probability of a segmentation is proportional to exp(sampler.alpha *
  /// its score); the method is forward filtering and backward sampling.
  PiecePath sample(std::string_view text, SubwordSampler& sampler) const;

 private:
  struct Lattice;
  /// An occurrence of a user-defined piece in a text, which is cut out before the search for the best segmentation: the
  /// byte offsets at which it begins and ends, and the piece's index in SentencePieceModel::pieces.
  struct Symbol {
    std::size_t begin, end;
    std::int32_t piece;
  };
  /// Returns the first occurrence of a user-defined piece that begins at or behind byte `at` of `text`. If no
  /// user-defined piece follows, returns an empty Symbol at the end of the text.
  Symbol next_symbol(std::string_view text, std::size_t at) const;
  template <class Take>
  void for_each_edge(std::string_view text, const std::vector<float>& scores, Take&& take) const;
  Lattice lattice(std::string_view text) const;

  /// trie_ has the pieces that the search for the best segmentation may use; symbols_ has the user-defined pieces that
  /// are cut out before the search (only in models that heed has learnt).
  PieceTrie trie_, symbols_;
  /// The score that segment() uses for each piece; the score of a user-defined piece is 0.1 * (its length in bytes -
  /// 1).
  std::vector<float> scores_;
  /// The score that the Lattice (the graph for n_best() and sample()) uses for each piece; the score of a user-defined
  /// piece is 0.1 * (its length in characters - 1). In SentencePiece, segment() and the lattice also differ in this
  /// way.
  std::vector<float> lattice_scores_;
  float unknown_score_ = 0, largest_score_ = 0;
  std::int32_t unknown_ = -1;
};

}  // namespace heed
