#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "heed/ops/decode_attention.h"
#include "heed/ops/running_average.h"
#include "heed/tensor/device_memory.h"
#include "heed/tensor/packed.h"
#include "heed/tensor/tensor.h"

namespace heed {

// The problem. Decoding adds one token per step to each hypothesis. The self-attention of a new token reads the keys
// and values of all earlier tokens of the same hypothesis. A decoder keeps those keys and values, so that each step
// computes them for the new token only. Beam search, however, replaces hypotheses after each step: one hypothesis may
// continue twice, and another one ends. To copy the keys and values of the hypotheses after each step would read and
// write the whole cache.
//
// The idea. The keys and values lie in one pool and never move. A hypothesis owns only a list of indices: for each
// position of the hypothesis, the place in the pool. Beam search copies these short lists.
//
// Words.
//   row       one hypothesis that is being decoded
//   position  the index of a token within a hypothesis, from 0
//   record    the key and the value of one token in one layer
//   slot      a place in the pool: the records of one position in all layers
//   chain     several consecutive tokens that one step feeds to a row: guesses of the next tokens. The step returns
//             scores after each token of the chain, and the row then keeps the guesses that were right.
//   pool      all slots. Slots are reused: a garbage collection, collect(), finds the slots that no row lists.
//   memory    the encoder's output, as in PyTorch. The keys and values of cross-attention are computed from the memory
//             once per batch. Cross-attention has one record for each layer and source token, and needs no slots.
//
// A decoder without self-attention (average attention, SSRU) has a state of D numbers for each position instead of a
// key and a value. A step reads only the state of the position before. The earlier states remain in their slots, so
// that rows share states, and go back to an earlier position, as they do with keys and values.
//
// An example: one sentence, beam size 2. A number in brackets is a slot.
//   begin()           row 0: []
//   begin_step()      row 0: [0]                            step 1 stores <s> in slot 0
//   select({0, 0})    row 0: [0]        row 1: [0]          the row becomes two hypotheses, which share slot 0
//   begin_step()      row 0: [0 1]      row 1: [0 2]        step 2 stores "Good" in slot 1, "Hello" in slot 2
//   select({1, 1})    row 0: [0 2]      row 1: [0 2]        both hypotheses continue "Hello"; no row lists slot 1
//   begin_step()      row 0: [0 2 3]    row 1: [0 2 4]      step 3
//   begin_step()      row 0: [0 2 3 1]  row 1: [0 2 4 5]    no slot was free: collect() found slot 1 and added more
//
// An example of chains: one sentence, whose row has two positions. A chain of three tokens makes three rows of the one,
// so that each row ends with another token of the chain and attends only to the tokens before.
//   begin_chains({3}) row 0: [0 1 2]    row 1: [0 1 2 3]    row 2: [0 1 2 3 4]
//   select({1})       row 0: [0 1 2 3]                      the first two tokens of the chain were right
//   truncate({2})     row 0: [0 1]                          another way back: to the row's first two positions

/// The key/value cache of a Transformer decoder for one batch: the keys and values of self-attention and of
/// cross-attention, for each layer. The comment at the top of this file explains how hypotheses share stored keys and
/// values.
template <class T>
class DecoderCache {
 public:
  /// Creates an empty cache for a decoder with `layers` layers of `width` columns, in the memory of `device`, whose
  /// context must outlive the cache. The precision of the device decides how keys and values are stored: exactly with
  /// float32, as 16-bit integers with bfloat16, and with int8 as 8-bit integers if `width` is at least 512, else as
  /// 16-bit integers. A cache of doubles stores keys and values exactly.
  /// With `of_states`, the cache holds for each position a state of `width` numbers, stored exactly, instead of the key
  /// and value of self-attention: use states() instead of append(), keys() and values().
  DecoderCache(Device device, int layers, std::int64_t width, int heads, bool of_states = false);

  /// Starts a new batch: discards all rows (hypotheses) of the old batch and creates one row without positions for each
  /// sentence. `source` gives the offsets of the sentences in the packed encoder output. Keeps the memory of the pool
  /// for the new batch.
  void begin(PackedOffsets source);
  /// Stores the keys and values of one layer's cross-attention. kv is [S, 2D], for S source tokens and model width D:
  /// each row is the key of a source token and, after the key, the value.
  void set_memory(int layer, Tensor<T> kv);

  /// Stores the vectors of source words that the decoder adds to its input, [S, D]: row begin + w is the vector of word
  /// number w of a source, whose first token is `begin`, as in EncoderOutput::words.
  void set_words(Tensor<T> vectors);

  /// Starts a decoding step: adds one position (token) to each row (hypothesis), and reserves a slot in the pool for
  /// the keys and values of the new position. lengths() includes the new position from now on; the caller must then
  /// call append() for each layer to fill the slots.
  void begin_step();
  /// Starts a decoding step that adds a chain of counts[r] positions (tokens) to row r: replaces row r by counts[r]
  /// rows, of which the first has one position of the chain more than row r had, the second has two more, and so on.
  /// The rows share the slots of their common positions. As after begin_step(), each row ends with a new position, for
  /// which the caller must call append() for each layer. counts has one element for each row; 0 removes the row.
  void begin_chains(std::span<const std::int32_t> counts);
  /// Stores the keys and values that one layer's self-attention computed for the last position of each row, which
  /// begin_step() or begin_chains() added. qkv is [R, 3D], for R rows (hypotheses) and model width D: query, key and
  /// value of each hypothesis, side by side. The query is not stored.
  void append(int layer, Tensor<T> qkv);
  /// Returns one StateStep for each row, about the new position that begin_step() or begin_chains() added: the address
  /// at which the state of `layer` at the new position must be stored, and the address of the state at the position
  /// before. The caller must compute the steps in the order of the rows, because the position before may be the new
  /// position of an earlier row. The result is valid until the next call.
  std::span<const StateStep<T>> states(int layer);
  /// Replaces the rows (hypotheses) after a step of beam search: the new row i is a copy of the old row parents[i]. An
  /// old row may occur in `parents` several times or never; parents.size() is the new number of rows.
  void select(std::span<const std::int32_t> parents);
  /// Removes the last positions of each row (hypothesis): row r keeps its first lengths[r] positions.
  void truncate(std::span<const std::int32_t> lengths);

  /// Stores a number that the decoder counts along a row (hypothesis), such as the words so far, with the last position
  /// of row r, which begin_step() or begin_chains() added.
  void set_count(std::size_t r, std::int32_t count) { counts_[slot_of(r, lengths_[r] - 1)] = count; }
  /// Returns the count that set_count() stored at the position before the last position of row r, or 0 if row r has
  /// only one position. That position may be the last position of an earlier row, so that the caller must count the
  /// rows in ascending order.
  std::int32_t count_before(std::size_t r) const { return lengths_[r] > 1 ? counts_[slot_of(r, lengths_[r] - 2)] : 0; }

  /// Returns the vectors of set_words(), [S, D].
  Tensor<T> words() const { return words_; }
  /// Returns the index of a row of words(): the row of source word number w, where w is the count at the last position
  /// of row r.
  std::int32_t word_of(std::size_t r) const;

  int rows() const { return static_cast<int>(lengths_.size()); }
  /// Returns, for each of the R rows (hypotheses), the number of positions (tokens), [R].
  std::span<const std::int32_t> lengths() const { return lengths_; }
  /// Returns, for each of the R rows (hypotheses), the index in the batch of the sentence that the hypothesis
  /// translates, [R].
  std::span<const std::int32_t> sentences() const { return sentences_; }
  /// Returns a table [R, capacity()] with one row for each of the R hypotheses: element t of row r is the slot of the
  /// pool that holds the keys and values of position t. Only the first lengths()[r] elements of row r are valid.
  std::span<const std::int32_t> slots() const { return slots_; }
  /// Returns the number of columns of the table slots(): how many positions each hypothesis can have before the table
  /// grows.
  std::int64_t capacity() const { return capacity_; }
  /// Returns the offsets of the sentences in the encoder output.
  PackedOffsets source() const { return {source_}; }

  /// Returns the number of positions for which the step needs tables: those of the longest row (hypothesis), or on a
  /// GPU up to 15 more, so that the kernels of the following steps have the same parameters (see CudaGraphs).
  std::int32_t longest() const { return longest_; }

  /// The arrays that describe the rows of a step, in the memory of the device: what cached_attention() and
  /// memory_attention() read. The elements are those of the functions above; the table of slots has `capacity` columns.
  struct StepArrays {
    std::span<const std::int32_t> lengths, sentences, slots;
    std::int64_t capacity = 0;
    PackedOffsets source = {};
  };
  /// Returns the arrays of the step that begin_step() or begin_chains() has started.
  StepArrays arrays() const;

  /// Returns the self-attention keys of one layer, [number of slots, D], for model width D: row s is the key in slot s
  /// of the pool.
  CachedRows<T> keys(int layer) const { return pool_records(layer).template keys<T>(); }
  /// Returns the self-attention values of one layer, [number of slots, D], for model width D: row s is the value in
  /// slot s of the pool.
  CachedRows<T> values(int layer) const { return pool_records(layer).template values<T>(); }
  /// Returns the cross-attention keys of one layer, [S, D]: one row for each of the S source tokens, D columns.
  CachedRows<T> memory_keys(int layer) const { return memory_records(layer).template keys<T>(); }
  /// Returns the cross-attention values of one layer, [S, D]: one row for each of the S source tokens, D columns.
  CachedRows<T> memory_values(int layer) const { return memory_records(layer).template values<T>(); }
  /// Returns the bytes that one position of a hypothesis takes in all layers together.
  std::size_t bytes_of_position() const { return layers_ * pool_record_; }
  /// Returns the bytes that the cross-attention keys and values of one source token take in all layers together.
  std::size_t bytes_of_source_token() const { return layers_ * record_; }

 private:
  /// Returns the slot of a position of row r.
  std::size_t slot_of(std::size_t r, std::int32_t position) const {
    return static_cast<std::size_t>(
        slots_[r * static_cast<std::size_t>(capacity_) + static_cast<std::size_t>(position)]);
  }
  void double_capacity();
  void collect(std::size_t added);
  std::int32_t take_slot();
  void upload_step();
  /// Returns records of the pool or of the memory: the first begins at `first`, and each `stride` bytes after the one
  /// before.
  CacheRecords records(std::byte* first, std::size_t stride) const {
    return {first,
            static_cast<std::int64_t>(stride),
            format_,
            static_cast<std::int64_t>(row_),
            static_cast<std::int64_t>(scales_),
            heads_};
  }
  /// Returns the records of self-attention in `layer`, one for each slot.
  CacheRecords pool_records(int layer) const { return records(pool_at(0, layer), bytes_of_position()); }
  /// Returns the records of cross-attention in `layer`, one for each source token of the batch.
  CacheRecords memory_records(int layer) const {
    return records(
        memory_.data() + static_cast<std::size_t>(layer) * static_cast<std::size_t>(memory_tokens_) * record_, record_);
  }
  /// Returns the address in the pool of what `slot` holds for `layer`.
  std::byte* pool_at(std::size_t slot, int layer) const {
    return pool_.data() + (slot * layers_ + static_cast<std::size_t>(layer)) * pool_record_;
  }

  Device device_;
  std::int64_t width_;
  std::size_t layers_;
  int heads_;
  CacheFormat format_;
  // A record is the key and the value of one token in one layer. The layout of a record, in bytes: the key begins at 0,
  // the value at row_, the scales of both at scales_; the record ends at record_. The scales have cache lines of their
  // own. The size of a record is therefore seldom a power of two, and records spread over all sets of the processor's
  // cache.
  std::size_t row_, scales_, record_;
  // The bytes of a record of the pool: record_, or those of a state.
  std::size_t pool_record_;
  // pool_ holds the records (keys and values) of self-attention, in the order [slot, layer]. memory_ holds the records
  // of cross-attention, in the order [layer, source token], with memory_tokens_ source tokens for each layer: those of
  // the batch, or on a GPU as many as there is memory for, so that most batches have the same addresses.
  DeviceMemory pool_, memory_;
  int memory_tokens_ = 0;
  std::vector<std::int32_t> source_, lengths_, sentences_, slots_, spare_, free_;
  std::vector<std::int32_t> counts_;  // for each slot of the pool
  std::vector<std::int32_t> places_;  // the slot of each row's last position, which the step has added
  Tensor<T> words_;                   // [S, D], in the memory of batch_
  // In the memory of the device, if it is not that of the host: arrays of the batch, and arrays of the step.
  Arena batch_, step_;
  std::span<const std::int32_t> source_on_device_, places_on_device_;
  StepArrays on_device_;
  std::vector<std::int32_t> staged_;  // the arrays of the step, one after the other
  std::vector<StateStep<T>> states_;
  // For each slot of the pool, whether any hypothesis lists the slot in slots_. Only collect() uses this array.
  std::vector<bool> used_;
  std::int64_t capacity_ = 0, slot_count_ = 0;
  std::int32_t longest_ = 0;
};

extern template class DecoderCache<float>;
extern template class DecoderCache<double>;

}  // namespace heed
