#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "heed/model/batch.h"
#include "heed/ops/linear.h"
#include "heed/text/lexicon/shortlist.h"

namespace heed {

/// The output layer of a batch whose sentences may each use the pieces of a list only. Sentences side by side share a
/// product with the columns of all their lists; from there on a row sees the columns of its own list, so that it does
/// not depend on its neighbours.
class ShortlistOutput {
 public:
  /// Chooses the lists of the sources and packs what they take of the output layer, weight [V, D] and bias [V] or
  /// absent. Sentence s is row s.
  void start(Graph<float>& graph, const Shortlist& shortlist, const PackedIds& source, Tensor<float> weight,
             Tensor<float> bias);
  /// Row i becomes what row parents[i] was.
  void select(std::span<const std::int32_t> parents);

  /// Scores [R, V] of hidden [R, D], minus infinity outside of the lists; in the graph's arena.
  Tensor<float> scores(Graph<float>& graph, Tensor<float> hidden, std::int64_t vocabulary);
  /// The k likeliest of each row under the softmax over its list, as StepModel::step() gives them; where a list is
  /// shorter, ids of <pad> with minus infinity fill up.
  void best(Graph<float>& graph, Tensor<float> hidden, std::int64_t k, float* log_probabilities, std::int32_t* ids);

 private:
  struct Sentence {
    std::vector<std::int32_t> ids, columns;  // of the list, and where they are in the group's product; ascending
    std::int32_t group = 0;
  };
  struct Group {
    PackedWeight<float> weight;
    bool alone = false;  // one sentence: its columns are all
  };

  /// Calls use(sentence, first row, scores [n, L]) for rows of a sentence that lie side by side, with the scores of its
  /// list.
  template <class Use>
  void for_sentences(Graph<float>& graph, Tensor<float> hidden, Use use);

  std::vector<Sentence> sentences_;
  std::vector<Group> groups_;
  std::vector<std::int32_t> rows_;  // the sentence of each
  Arena weights_;
};

}  // namespace heed
