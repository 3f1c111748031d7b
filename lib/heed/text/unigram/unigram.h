#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "heed/text/unigram/piece_trie.h"
#include "heed/text/unigram/sentencepiece_model.h"

namespace heed {

struct SubwordSampler;

/// One piece of a segmentation: the piece's index in SentencePieceModel::pieces (or the index of the unknown piece),
/// and the byte offset at which the piece ends. The piece begins where the piece before it ends.
struct PieceSpan {
  std::int32_t piece;
  std::uint32_t end;
};

/// A segmentation of a text, and its score: the logarithm of its probability.
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

  /// Replaces `spans` by the best segmentation of a normalised text (Viterbi algorithm). `before` is the score of the
  /// text in front of `text`. Returns `before` plus the score of the segmentation.
  float segment(std::string_view text, std::vector<PieceSpan>& spans, float before = 0) const;
  /// Replaces `spans` by the best segmentation, computed with 64-bit sums. Returns the margin: by how much the score
  /// exceeds the score of the second-best segmentation (infinite if the text has only one segmentation). If the margin
  /// is larger than all rounding errors of 32-bit sums, segment() gives the same segmentation.
  double segment_with_margin(std::string_view text, std::vector<PieceSpan>& spans) const;
  /// The score of the piece with the index `piece`.
  float score(std::int32_t piece) const {
    return piece == unknown_ ? unknown_score_ : scores_[static_cast<std::size_t>(piece)];
  }
  /// Whether all scores are so small that a text of 1,000 bytes never reaches the limit at which segment() resets its
  /// sums to 0.
  bool has_small_scores() const { return largest_score_ < 40; }
  /// Returns the `count` best segmentations, the best first: an A* search from the end of the text, with the Viterbi
  /// scores as its heuristic. As in SentencePiece, a search that exceeds its limits continues with the most promising
  /// partial paths, or returns the best segmentation only.
  std::vector<PiecePath> n_best(std::string_view text, int count) const;
  /// Returns a segmentation drawn with a probability proportional to exp(sampler.alpha * score), by forward filtering
  /// and backward sampling.
  PiecePath sample(std::string_view text, SubwordSampler& sampler) const;

 private:
  struct Lattice;
  /// An occurrence of a user-defined piece that is cut out before the search: its bytes in the text and the piece's
  /// index.
  struct Symbol {
    std::size_t begin, end;
    std::int32_t piece;
  };
  /// Returns the first user-defined piece at or behind byte `at`; a symbol that begins at the end of the text if none
  /// follows.
  Symbol next_symbol(std::string_view text, std::size_t at) const;
  template <class Take>
  void for_each_edge(std::string_view text, const std::vector<float>& scores, Take&& take) const;
  Lattice lattice(std::string_view text) const;

  /// The pieces that the search may take, and the user-defined pieces that are cut out before the search.
  PieceTrie trie_, symbols_;
  /// The score of each piece, for segment(); the score of a user-defined piece is 0.1 * (its length in bytes - 1).
  std::vector<float> scores_;
  /// The score of each piece, for Lattice; the score of a user-defined piece is 0.1 * (its length in characters - 1).
  /// SentencePiece has the same difference between its two searches.
  std::vector<float> lattice_scores_;
  float unknown_score_ = 0, largest_score_ = 0;
  std::int32_t unknown_ = -1;
};

}  // namespace heed
