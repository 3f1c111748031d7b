#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "heed/autograd/graph.h"
#include "heed/nn/position_table.h"
#include "heed/nn/sinusoid_table.h"
#include "heed/ops/embedding.h"

namespace heed {

/// The first layer of an encoder or a decoder: dropout(sqrt(D) * weight[id] + encoding of the position) (Vaswani et al.
/// 2017, sections 3.4 and 3.5). Where the model encodes positions within attention or not at all, nothing is added to
/// the embedding. The model adds the weight [V, D] to the layout, because several layers may share one weight.
template <class T>
class TokenEmbedding {
 public:
  /// `positions` is the parameter that holds a learned vector for each position. Where `positions` is empty,
  /// `sinusoids` encode the positions. Where `sinusoids` is null as well, no vector is added.
  TokenEmbedding(ParameterId weight, ParameterId positions, std::shared_ptr<const SinusoidTable<T>> sinusoids,
                 std::int64_t width, double dropout)
      : weight_(weight), positions_(positions), sinusoids_(std::move(sinusoids)), width_(width), dropout_(dropout) {}

  /// Returns the embeddings of N tokens. Shapes: ids [N], positions [N] (each below `length`) -> [N, D]. `ids` and
  /// `positions` must stay in memory until the backward pass has ended.
  Variable<T> operator()(Graph<T>& graph, std::span<const std::int32_t> ids, std::span<const std::int32_t> positions,
                         std::int64_t length) const {
    const auto embed = [&](std::span<const std::int32_t> rows, Variable<T> vectors) {
      return embedding(graph, ids, rows, graph.parameter(weight_), vectors,
                       static_cast<T>(std::sqrt(static_cast<double>(width_))), dropout_);
    };
    if (positions_ || !sinusoids_ || graph.device().is_host() || positions.empty())
      return embed(positions, position_vectors(graph, length));
    // A GPU gets the vectors of the positions that occur: in a step of decoding, that is often one.
    const auto [least, greatest] = std::ranges::minmax(positions);
    const Tensor<std::int32_t> rows = graph.host_arena().template tensor<std::int32_t>({std::ssize(positions)});
    std::ranges::transform(positions, rows.data(), [least](std::int32_t position) { return position - least; });
    const Tensor<T> table = sinusoids_->get(length).row_block(least, greatest - least + 1);
    return embed(rows.span(), graph.input(graph.device().upload(table)));
  }

  /// Returns the position vectors that are added to embeddings, one vector in each row, or an absent variable if the
  /// model adds none. With sinusoids the result has the positions 0 ... `length` - 1. With learned positions the result
  /// is the whole table of learned vectors, whatever `length` is.
  Variable<T> position_vectors(Graph<T>& graph, std::int64_t length) const {
    if (positions_) return graph.parameter(positions_);
    if (!sinusoids_) return {};
    return graph.input(graph.device().upload(sinusoids_->get(length).row_block(0, length)));
  }
  /// Appends the table of the position vectors to `tables`: the first `length` vectors, or all of them if the model has
  /// fewer. Appends nothing if the model adds no position vectors. `stack` says which stacks of layers (encoder,
  /// decoder or both) read the vectors.
  void add_tables(Graph<T>& graph, PositionTable::Stack stack, std::int64_t length,
                  std::vector<PositionTable>& tables) const {
    const Variable<T> vectors = position_vectors(graph, length);
    if (!vectors) return;
    const std::int64_t rows = std::min(length, vectors.value.rows());
    tables.push_back({.stack = stack,
                      .term = positions_ ? PositionTable::Term::learned : PositionTable::Term::sinusoid,
                      .row_axis = "position",
                      .column_axis = "component",
                      .rows = rows,
                      .columns = width_,
                      .values = table_values(graph.device().download(vectors.value), 0, 0, rows, width_)});
  }

  ParameterId weight() const { return weight_; }

 private:
  ParameterId weight_, positions_;
  std::shared_ptr<const SinusoidTable<T>> sinusoids_;
  std::int64_t width_;
  double dropout_;
};

}  // namespace heed
