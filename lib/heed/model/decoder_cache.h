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

// The problem. Decoding adds one token per step to each hypothesis. The self-attention of a new token reads the keys
// and values of all earlier tokens of the same hypothesis. A decoder keeps those keys and values, so that each step
// computes them for the new token only. Beam search, however, replaces hypotheses after each step: one hypothesis may
// continue twice, and another one ends. To copy the keys and values of the hypotheses after each step would read and
// write the whole cache.
//
// The idea. The keys and values lie in one pool and never move. A hypothesis owns only a list of numbers: for each of
// its positions, the place in the pool. Beam search copies these short lists.
//
// Words.
//   row       one hypothesis that is being decoded
//   position  the index of a token within a hypothesis, from 0
//   record    the key and the value of one token in one layer
//   slot      a place in the pool: the records of one position in all layers
//   pool      all slots. Slots are reused: a garbage collection, collect(), finds the slots that no row lists.
//   memory    the encoder's output, as in PyTorch. The keys and values of cross-attention are computed from the memory
//             once per batch. These have one record for each layer and source token, and need no slots.
//
// An example: one sentence, beam size 2. A number in brackets is a slot.
//   begin()           row 0: []
//   begin_step()      row 0: [0]                            step 1 stores <s> in slot 0
//   select({0, 0})    row 0: [0]        row 1: [0]          the row becomes two hypotheses, which share slot 0
//   begin_step()      row 0: [0 1]      row 1: [0 2]        step 2 stores "Good" in slot 1, "Hello" in slot 2
//   select({1, 1})    row 0: [0 2]      row 1: [0 2]        both hypotheses continue "Hello"; no row lists slot 1
//   begin_step()      row 0: [0 2 3]    row 1: [0 2 4]      step 3
//   begin_step()      row 0: [0 2 3 1]  row 1: [0 2 4 5]    no slot was free: collect() found slot 1 and added more

/// The key/value cache of a Transformer decoder for one batch: the keys and values of self-attention and of
/// cross-attention, for each layer. The comment above explains the pool of slots.
template <class T>
class DecoderCache {
 public:
  /// Creates an empty cache for a decoder with `layers` layers of `width` columns. `precision` is the model's
  /// precision: float32 stores keys and values exactly; bfloat16 stores 16-bit integers; int8 stores 8-bit integers for
  /// models of at least 512 columns and 16-bit integers for narrower ones. A cache of doubles stores them exactly.
  DecoderCache(int layers, std::int64_t width, int heads, Precision precision);

  /// Starts a new batch: discards the old rows and creates one row without positions for each sentence of `source`, the
  /// offsets of the packed encoder output. Keeps the pool's memory for the new batch.
  void begin(PackedOffsets source);
  /// Stores the keys and values of one layer's cross-attention. kv is [S, 2D]: in each row, the key of a source token
  /// and, after the key, the value.
  void set_memory(int layer, Tensor<T> kv);

  /// Starts a decoding step: adds one position to each row and assigns a slot to the new position. lengths() includes
  /// the new position from now on; append() must fill the slot.
  void begin_step();
  /// Stores the keys and values that one layer's self-attention computed for the position that begin_step() added. qkv
  /// is [R, 3D]: query, key and value of each row, side by side. The query is not stored.
  void append(int layer, Tensor<T> qkv);
  /// Replaces the rows after a step of beam search: the new row i is a copy of the old row parents[i]. A parent may
  /// occur several times or never; parents.size() is the new number of rows.
  void select(std::span<const std::int32_t> parents);

  int rows() const { return static_cast<int>(lengths_.size()); }
  /// Returns the number of positions of each row, [R].
  std::span<const std::int32_t> lengths() const { return lengths_; }
  /// Returns the index of the sentence in the batch that each row translates, [R].
  std::span<const std::int32_t> sentences() const { return sentences_; }
  /// Returns the slots of all rows, [R, capacity()]. Only the first lengths()[r] elements of row r are valid.
  std::span<const std::int32_t> slots() const { return slots_; }
  /// Returns how many positions slots() has room for in each row.
  std::int64_t capacity() const { return capacity_; }

  /// Returns the self-attention keys of one layer, [number of slots, D]: row s is the key in slot s.
  CachedRows<T> keys(int layer) const { return keys_in(pool_at(0, layer), bytes_of_position()); }
  /// Returns the self-attention values of one layer, [number of slots, D]: row s is the value in slot s.
  CachedRows<T> values(int layer) const { return values_beside(keys(layer)); }
  /// Returns the cross-attention keys of one layer, [S, D]: one row for each source token.
  CachedRows<T> memory_keys(int layer) const { return keys_in(memory_at(layer), record_); }
  /// Returns the cross-attention values of one layer, [S, D]: one row for each source token.
  CachedRows<T> memory_values(int layer) const { return values_beside(memory_keys(layer)); }
  PackedOffsets source() const { return {source_}; }
  /// Returns the bytes that one slot takes: the records of all layers. One source token of the encoder's output takes
  /// the same number of bytes.
  std::size_t bytes_of_position() const { return layers_ * record_; }

 private:
  void double_capacity();
  void collect();
  void store(const T* kv, std::byte* record) const;
  /// Returns the number of scales of one key (or value): int8 has one scale for each head, int16 has one.
  std::size_t scales_of_row() const { return format_ == CacheFormat::int8 ? static_cast<std::size_t>(heads_) : 1; }
  /// Describes the keys of consecutive records: the first record is at `first`, the next one `stride` bytes behind.
  CachedRows<T> keys_in(const std::byte* first, std::size_t stride) const {
    return {first, static_cast<std::int64_t>(stride), format_, static_cast<std::int64_t>(scales_)};
  }
  /// Describes the values that are in the same records as `keys`.
  CachedRows<T> values_beside(CachedRows<T> keys) const {
    keys.data += row_;
    keys.scales += static_cast<std::int64_t>(scales_of_row() * sizeof(float)) - static_cast<std::int64_t>(row_);
    return keys;
  }
  /// Returns the address of the record of one slot and layer in the pool.
  std::byte* pool_at(std::int32_t slot, int layer) const {
    return reinterpret_cast<std::byte*>(pool_.data()) +
           (static_cast<std::size_t>(slot) * layers_ + static_cast<std::size_t>(layer)) * record_;
  }
  /// Returns the address of one layer's first record of the encoder's output.
  std::byte* memory_at(int layer) const {
    return reinterpret_cast<std::byte*>(memory_.data()) +
           static_cast<std::size_t>(layer) * static_cast<std::size_t>(source().tokens()) * record_;
  }

  std::int64_t width_;
  std::size_t layers_;
  int heads_;
  CacheFormat format_;
  // The layout of a record, in bytes: the key begins at 0, the value at row_, the scales of both at scales_; the record
  // ends at record_. The scales have cache lines of their own. The size of a record is therefore seldom a power of two,
  // and records spread over all sets of the processor's cache.
  std::size_t row_, scales_, record_;
  Pages pool_, memory_;  // records of self-attention [slot, layer], of cross-attention [layer, source token]
  std::vector<std::int32_t> source_, lengths_, sentences_, slots_, spare_, free_;
  std::vector<bool> used_;  // for each slot, whether a row lists the slot; valid within collect() only
  std::int64_t capacity_ = 0, slot_count_ = 0;
};

extern template class DecoderCache<float>;
extern template class DecoderCache<double>;

}  // namespace heed
