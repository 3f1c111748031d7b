#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "heed/text/unigram/piece_trie.h"
#include "heed/text/unigram/sentencepiece_model.h"

namespace heed {

struct SubwordSampler;

/// A piece of a text: its number in the model, or that of the unknown piece, and where its bytes end; it begins where
/// the one before ends.
struct PieceSpan {
  std::int32_t piece;
  std::uint32_t end;
};

/// A segmentation and its log-probability.
struct PiecePath {
  std::vector<PieceSpan> spans;
  float score = 0;
};

/// The unigram language model (Kudo 2018, "Subword regularization"): a segmentation's log-probability is the sum of its
/// pieces' scores. An unknown character costs 10 more than the lowest score; in models of heed's own,
/// user-defined pieces are cut out first; in others they get a small bonus only, as in SentencePiece. Sums are of 32
/// bits, in the order and with the ties of SentencePiece 0.2.3. Immutable; serves any number of threads.
class UnigramModel {
 public:
  explicit UnigramModel(const SentencePieceModel& model);

  /// Replaces `spans` by the most probable segmentation of a normalised text (Viterbi). `before`: the score of what
  /// stands in front of it. Returns the score up to its end.
  float segment(std::string_view text, std::vector<PieceSpan>& spans, float before = 0) const;
  /// The most probable segmentation by sums in 64 bits. Returns by how much its score is above the second best's;
  /// infinite where there is no other. It is segment()'s where this is more than rounding can change.
  double segment_with_margin(std::string_view text, std::vector<PieceSpan>& spans) const;
  float score(std::int32_t piece) const {
    return piece == unknown_ ? unknown_score_ : scores_[static_cast<std::size_t>(piece)];
  }
  /// Whether sums of scores stay small enough that a text of a thousand bytes never makes them start again at 0.
  bool has_small_scores() const { return largest_score_ < 40; }
  /// The `count` most probable segmentations, best first (A* from the end, with the Viterbi scores as heuristic). As in
  /// the reference, a search that grows beyond its limits goes on with the best partial paths, or gives one path only.
  std::vector<PiecePath> n_best(std::string_view text, int count) const;
  /// A segmentation drawn with probability proportional to exp(sampler.alpha * score): forward filtering, backward
  /// sampling.
  PiecePath sample(std::string_view text, SubwordSampler& sampler) const;

 private:
  struct Lattice;
  /// A user-defined piece that is cut out first.
  struct Symbol {
    std::size_t begin, end;
    std::int32_t piece;
  };
  /// The first one from `at` on; behind the text where there is none.
  Symbol next_symbol(std::string_view text, std::size_t at) const;
  template <class Take>
  void for_each_edge(std::string_view text, const std::vector<float>& scores, Take&& take) const;
  Lattice lattice(std::string_view text) const;

  PieceTrie trie_, symbols_;
  std::vector<float> scores_;          // per piece; user-defined ones: the bonus for their bytes
  std::vector<float> lattice_scores_;  // the same; user-defined ones: for their characters, as the reference has it
  float unknown_score_ = 0, largest_score_ = 0;
  std::int32_t unknown_ = -1;
};

}  // namespace heed
