#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <mutex>
#include <vector>

#include "heed/nn/position_encoding.h"
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

}  // namespace heed
