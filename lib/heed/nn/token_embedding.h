#pragma once

#include <cmath>
#include <cstdint>
#include <memory>
#include <mutex>
#include <span>
#include <vector>

#include "heed/autograd/graph.h"
#include "heed/nn/position_encoding.h"
#include "heed/ops/embedding.h"
#include "heed/tensor/aligned_vector.h"

namespace heed {

/// A table of sinusoids, or of the cosines and sines of rotary positions, that grows to the longest sequence seen so
/// far. Several threads may use the table at once; tensors that get() returned stay valid, because a longer table gets
/// new memory.
template <class T>
class SinusoidTable {
 public:
  SinusoidTable(PositionEncoding kind, std::int64_t width) : kind_(kind), width_(width) {}

  /// Returns a table [L, width] for the positions 0 ... L - 1, where L >= length (see fill_sinusoids()).
  Tensor<T> get(std::int64_t length) const {
    const std::lock_guard lock(mutex_);
    if (tables_.empty() || size_ < length) {
      size_ = std::max<std::int64_t>({length, 2 * size_, 64});
      tables_.push_back(std::make_unique<AlignedVector<T>>(static_cast<std::size_t>(size_ * width_)));
      fill_sinusoids(kind_, Tensor<T>(tables_.back()->data(), {size_, width_}));
    }
    return {tables_.back()->data(), {size_, width_}};
  }

 private:
  PositionEncoding kind_;
  std::int64_t width_;
  mutable std::mutex mutex_;
  mutable std::vector<std::unique_ptr<AlignedVector<T>>> tables_;
  mutable std::int64_t size_ = 0;
};

/// The first layer of an encoder or a decoder: dropout(sqrt(D) * weight[id] + encoding of the position) (Vaswani et al.
/// 2017, sections 3.4 and 3.5). Where the model encodes positions within attention or not at all, nothing is added to
/// the embedding. The model adds the weight [V, D] to the layout, because several layers may share one
/// weight.
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
    const Variable<T> table = positions_   ? graph.parameter(positions_)
                              : sinusoids_ ? graph.input(sinusoids_->get(length))
                                           : Variable<T>();
    return embedding(graph, ids, positions, graph.parameter(weight_), table,
                     static_cast<T>(std::sqrt(static_cast<double>(width_))), dropout_);
  }

  ParameterId weight() const { return weight_; }

 private:
  ParameterId weight_, positions_;
  std::shared_ptr<const SinusoidTable<T>> sinusoids_;
  std::int64_t width_;
  double dropout_;
};

}  // namespace heed
