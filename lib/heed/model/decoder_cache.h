#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "heed/tensor/aligned_vector.h"
#include "heed/tensor/packed.h"
#include "heed/tensor/tensor.h"

namespace heed {

/// What a decoder remembers of a batch between steps: for each layer the keys and values of its self-attention and of
/// the encoder's output.
///
/// A row is a hypothesis. The keys and values of all rows and positions lie in one pool of slots a layer; a row holds
/// the list of its slots. Reordering hypotheses (beam search) copies these short lists and never the cache, and
/// hypotheses with a common prefix share its slots. Slots that no row lists any more are found when the pool is full.
template <class T>
class DecoderCache {
 public:
  DecoderCache(int layers, std::int64_t width);

  /// Forgets everything; starts one row for each sentence of `source` (packed encoder output).
  void begin(PackedOffsets source);
  /// kv [S, 2D]: keys and values of the encoder's output side by side.
  void set_memory(int layer, Tensor<T> kv);

  /// Gives each row a slot for the next position; lengths() counts it from now on.
  void begin_step();
  /// qkv [R, 3D]: stores the keys and values of the position begun.
  void append(int layer, Tensor<T> qkv);
  /// Row i becomes what row parents[i] was; the number of rows becomes parents.size().
  void select(std::span<const std::int32_t> parents);

  int rows() const { return static_cast<int>(lengths_.size()); }
  /// Positions of each row, [R].
  std::span<const std::int32_t> lengths() const { return lengths_; }
  /// The sentence of each row, [R].
  std::span<const std::int32_t> sentences() const { return sentences_; }
  /// Slots of the rows, [R, capacity()].
  std::span<const std::int32_t> slots() const { return slots_; }
  std::int64_t capacity() const { return capacity_; }

  /// The pool's keys and values: slot s at s * 2D.
  const T* keys(int layer) const { return pools_[static_cast<std::size_t>(layer)].data(); }
  const T* values(int layer) const { return keys(layer) + width_; }
  /// [S, 2D] as set.
  Tensor<T> memory(int layer) const;
  PackedOffsets source() const { return {source_}; }

 private:
  void widen();
  void collect();

  std::int64_t width_;
  std::vector<AlignedVector<T>> pools_, memories_;
  std::vector<std::int32_t> source_, lengths_, sentences_, slots_, spare_, free_;
  std::int64_t capacity_ = 0, slot_count_ = 0;
};

extern template class DecoderCache<float>;
extern template class DecoderCache<double>;

}  // namespace heed
