#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "heed/base/pages.h"
#include "heed/ops/decode_attention.h"
#include "heed/tensor/context.h"
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
  /// `precision`: of the model; below float32 keys and values are kept in 16 bits, in int8 those of wide models in 8.
  /// Doubles are kept as they are.
  DecoderCache(int layers, std::int64_t width, int heads, Precision precision);

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

  /// Those of each slot, [.., D].
  CachedRows<T> keys(int layer) const { return keys_in(pool_at(0, layer), bytes_of_position()); }
  CachedRows<T> values(int layer) const { return values_beside(keys(layer)); }
  /// Those of the encoder's output, [S, D].
  CachedRows<T> memory_keys(int layer) const { return keys_in(memory_at(layer), record_); }
  CachedRows<T> memory_values(int layer) const { return values_beside(memory_keys(layer)); }
  PackedOffsets source() const { return {source_}; }
  /// What a position takes in all layers, and a token of the encoder's output.
  std::size_t bytes_of_position() const { return layers_ * record_; }

 private:
  void double_capacity();
  void collect();
  void store(const T* kv, std::byte* record) const;
  std::size_t scales_of_row() const { return format_ == CacheFormat::int8 ? static_cast<std::size_t>(heads_) : 1; }
  CachedRows<T> keys_in(const std::byte* first, std::size_t stride) const {
    return {first, static_cast<std::int64_t>(stride), format_, static_cast<std::int64_t>(scales_)};
  }
  CachedRows<T> values_beside(CachedRows<T> keys) const {
    keys.data += row_;
    keys.scales += static_cast<std::int64_t>(scales_of_row() * sizeof(float)) - static_cast<std::int64_t>(row_);
    return keys;
  }
  std::byte* pool_at(std::int32_t slot, int layer) const {
    return reinterpret_cast<std::byte*>(pool_.data()) +
           (static_cast<std::size_t>(slot) * layers_ + static_cast<std::size_t>(layer)) * record_;
  }
  std::byte* memory_at(int layer) const {
    return reinterpret_cast<std::byte*>(memory_.data()) +
           static_cast<std::size_t>(layer) * static_cast<std::size_t>(source().tokens()) * record_;
  }

  std::int64_t width_;
  std::size_t layers_;
  int heads_;
  CacheFormat format_;
  // A record is a key, its value, and, at scales_, cache lines with their scales, so that many records do not meet in
  // few sets of a cache. In bytes:
  std::size_t row_, scales_, record_;
  Pages pool_, memory_;  // a record for each [slot, layer] and [layer, token]
  std::vector<std::int32_t> source_, lengths_, sentences_, slots_, spare_, free_;
  std::vector<bool> used_;  // slots that rows list
  std::int64_t capacity_ = 0, slot_count_ = 0;
};

extern template class DecoderCache<float>;
extern template class DecoderCache<double>;

}  // namespace heed
