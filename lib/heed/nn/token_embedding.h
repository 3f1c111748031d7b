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

/// A sinusoid table that grows to the longest sequence seen; safe for several threads, and tables handed out stay.
template <class T>
class SinusoidTable {
 public:
  SinusoidTable(PositionEncoding kind, std::int64_t width) : kind_(kind), width_(width) {}

  /// At least `length` positions, [L, D].
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

/// dropout(sqrt(D) * weight[id] + position) (Vaswani et al. 2017, sections 3.4 and 3.5). The weight is given by the
/// model, which may share it; learned positions are the parameter `positions`.
template <class T>
class TokenEmbedding {
 public:
  TokenEmbedding(ParameterId weight, ParameterId positions, std::shared_ptr<const SinusoidTable<T>> sinusoids,
                 std::int64_t width, double dropout)
      : weight_(weight), positions_(positions), sinusoids_(std::move(sinusoids)), width_(width), dropout_(dropout) {}

  /// ids [N], positions [N] (each below `length`) -> [N, D]. Both must outlive the graph's computation.
  Variable<T> operator()(Graph<T>& graph, std::span<const std::int32_t> ids, std::span<const std::int32_t> positions,
                         std::int64_t length) const {
    const Variable<T> table = positions_ ? graph.parameter(positions_) : graph.input(sinusoids_->get(length));
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
