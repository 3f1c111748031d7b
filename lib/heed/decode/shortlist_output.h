#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "heed/model/batch.h"
#include "heed/ops/packed_linear.h"
#include "heed/ops/top_k.h"
#include "heed/text/lexicon/shortlist.h"

namespace heed {

/// The output layer of a batch in which a shortlist names the target pieces that each sentence may use. Neighbouring
/// sentences form a group, and each group computes one matrix product with the columns of all its sentences' pieces.
/// Afterwards each row (hypothesis) reads the columns of its own sentence only, so that the result does not depend on
/// the neighbours.
///
/// A GPU computes the columns of all pieces, since it reads the whole weight in less time than it would take to gather
/// columns, and then takes those away that the shortlist does not allow.
///
/// Example: sentence 0 may use the pieces 5 and 9, sentence 1 the pieces 5 and 7. The product of the group has the
/// columns of the pieces 5, 7 and 9; sentence 0 reads the columns 0 and 2, sentence 1 the columns 0 and 1.
class ShortlistOutput {
 public:
  /// The context of the device, on which all graphs compute, must outlive the object.
  explicit ShortlistOutput(Device device) : device_(device), weights_(device.arena().source()) {}

  /// Looks up the pieces of each source sentence in the shortlist, and packs the columns of these pieces, group by
  /// group, from the output layer: weight [V, D] and bias [V], which may be absent. Afterwards row s belongs to
  /// sentence s.
  void start(Graph<float>& graph, const Shortlist& shortlist, const PackedIds& source, Tensor<float> weight,
             Tensor<float> bias);
  /// Reorders the rows, one for each hypothesis: new row i belongs to the same sentence as old row parents[i].
  void select(std::span<const std::int32_t> parents);
  /// Says which sentence each row belongs to.
  void set_rows(std::span<const std::int32_t> sentences) { rows_.assign(sentences.begin(), sentences.end()); }

  /// Returns the scores [R, V] of all pieces, computed from the hidden states `hidden` [R, D], in the graph's arena. A
  /// piece that the shortlist does not allow for a row's sentence has the score minus infinity.
  Tensor<float> scores(Graph<float>& graph, Tensor<float> hidden, std::int64_t vocabulary);
  /// Computes the k likeliest pieces of each row, under the softmax over the pieces that the shortlist allows for the
  /// row's sentence, in the format of StepModel::step(). When the shortlist allows fewer than k pieces, `<pad>` with
  /// minus infinity fills the remaining places.
  void best(Graph<float>& graph, Tensor<float> hidden, std::int64_t k, float* log_probabilities, std::int32_t* ids);

 private:
  struct Sentence {
    // The ids of the pieces that the shortlist allows for the sentence, and the columns of these pieces in the matrix
    // product of the sentence's group. Both are in ascending order.
    std::vector<std::int32_t> ids, columns;
    std::int32_t group = 0;
  };
  struct Group {
    PackedWeight<float> weight;
    // Whether the group has only one sentence, which uses all columns of the group's matrix product.
    bool alone = false;
  };

  void start_on_gpu(std::int64_t vocabulary);
  void take_away_columns(Tensor<float> scores, std::int64_t first) const;
  /// Calls use(sentence, first row, scores [n, L]) for each run of n neighbouring rows that belong to the same
  /// sentence. L is the number of pieces that the shortlist allows for the sentence.
  template <class Use>
  void for_sentences(Graph<float>& graph, Tensor<float> hidden, Use use);

  Device device_;
  std::vector<Sentence> sentences_;
  std::vector<Group> groups_;
  // The index in sentences_ of the sentence that each row (hypothesis) belongs to.
  std::vector<std::int32_t> rows_;
  Arena weights_;
  // On a GPU: the output layer, and the sets of columns that the sentences may use, for mask_columns().
  Tensor<float> weight_, bias_;
  ColumnSets sets_;
};

}  // namespace heed
