#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "heed/ops/gemm/maybe_rounded.h"
#include "heed/ops/position_bias.h"
#include "heed/tensor/context.h"
#include "heed/tensor/packed.h"

namespace heed {

/// A view of rows in memory: `data` points to the first row's first used element, and rows begin `stride` elements
/// apart.
template <class T>
struct RowView {
  const T* data;
  std::int64_t stride;
};

/// Where the rows of a result of attention go: in full precision, or rounded to bfloat16 where inference on a GPU does
/// so (see ops/rounded_result.h). The other pointer is null.
template <class T>
struct AttentionRows {
  T* full = nullptr;
  Bfloat16* rounded = nullptr;

  AttentionRows(T* rows) : full(rows) {}
  AttentionRows(const MaybeRounded<T>& rows) : full(rows.full.data()), rounded(rows.rounded.data()) {}
};

/// How a key/value cache stores its rows. `exact`: as floating-point numbers. `int16`: as integers of 16 bits with one
/// scale for each row. `int8`: as integers of 8 bits with one scale for each head of each row. The two integer formats
/// serve inference at lower precision: they take less memory, and reading the cache is most of the time that attention
/// takes in a larger model.
enum class CacheFormat { exact, int16, int8 };

/// A view of the keys, or of the values, in a key/value cache; each row of the cache holds one position.
template <class T>
struct CachedRows {
  const std::byte* data;  ///< the address of the first row of keys or values, in the memory of the device
  std::int64_t stride;    ///< bytes from the beginning of a row to the beginning of the next row
  CacheFormat format = CacheFormat::exact;
  std::int64_t scales = 0;  ///< bytes from a row's beginning to the row's scales (float32); not used with `exact`
};

/// Records of a key/value cache: a record is the key of a position, then the value, then the scales of both. With
/// `exact` there are no scales.
struct CacheRecords {
  std::byte* data = nullptr;  ///< the address of the first record, in the memory of the device
  std::int64_t stride = 0;    ///< bytes from the beginning of a record to the beginning of the next record
  CacheFormat format = CacheFormat::exact;
  std::int64_t value = 0;   ///< bytes from a record's beginning to the value
  std::int64_t scales = 0;  ///< bytes from a record's beginning to the scales (float32)
  int heads = 1;            ///< the number of scales of a key, and of a value, with `int8`; otherwise there is one

  template <class T>
  CachedRows<T> keys() const {
    return {data, stride, format, scales};
  }
  template <class T>
  CachedRows<T> values() const {
    return {data + value, stride, format, scales + scales_of_row() * static_cast<std::int64_t>(sizeof(float)) - value};
  }
  std::int64_t scales_of_row() const { return format == CacheFormat::int8 ? heads : 1; }
};

/// Writes a row of keys or values to a cache of the format `exact`: copies `columns` numbers.
template <class T>
void cache_row(const T* from, std::int64_t columns, std::byte* to);
/// Writes a row of keys or values to a cache of the format `int16`. Each number is divided by the row's scale
/// max |x| / 32,767 and rounded to the nearest integer. The scale is NaN where a number of the row is not finite.
/// Shapes: from [columns] -> to [columns], scale a single number.
void cache_row(const float* from, std::int64_t columns, std::int16_t* to, float* scale);
/// Writes a row of keys or values to a cache of the format `int8`. Each number is divided by the scale of its head,
/// max |x| / 127, and rounded to the nearest integer. A scale is NaN where a number of the head is not finite.
/// Shapes: from [columns], `columns` a multiple of heads -> to [columns], scales [heads].
void cache_row(const float* from, std::int64_t columns, int heads, std::int8_t* to, float* scales);

/// Writes keys and values to a key/value cache, in its format (see cache_row()). Shapes: kv `rows` rows [2 D], a key
/// and after it the value; row r goes to record places[r], or to record r where `places` is empty. places [rows] is in
/// the memory of the device.
template <class T>
void store_records(CpuContext& device, RowView<T> kv, std::int64_t rows, std::int64_t width,
                   const CacheRecords& records, std::span<const std::int32_t> places);
template <class T>
void store_records(CudaContext& device, RowView<T> kv, std::int64_t rows, std::int64_t width,
                   const CacheRecords& records, std::span<const std::int32_t> places);

/// Computes the self-attention of one decoding step over a key/value cache (Vaswani et al. 2017, section 3.2). The
/// cache is a pool of rows in any order. Row r of the query attends to the pool's rows slots[r * capacity + t] for all
/// t < lengths[r]. Therefore reordering the hypotheses of a beam changes only the small table `slots`, never the cache.
/// All arrays are in the memory of the device, since all layers of a step read the same.
///
/// Shapes: query R rows of D = heads x d columns, keys and values the rows of the pool, slots [R, capacity],
/// lengths [R] -> out [R, D]. A row's result does not depend on the other rows, bit for bit. A row of length 0 gives
/// zeros. `positions` are the terms that positions add (see position_bias.h): the pool's row slots[r * capacity + t] is
/// the token at position t, and the query of row r is at position lengths[r] - 1. A bias must be that of a causal
/// attention. Rotary positions need no term, because the cache holds rotated keys.
template <class T>
void cached_attention(CpuContext& device, RowView<T> query, CachedRows<T> keys, CachedRows<T> values,
                      std::span<const std::int32_t> slots, std::int64_t capacity, std::span<const std::int32_t> lengths,
                      int heads, std::int64_t width, AttentionRows<T> out, const PositionBias<T>& positions = {});
template <class T>
void cached_attention(CudaContext& device, RowView<T> query, CachedRows<T> keys, CachedRows<T> values,
                      std::span<const std::int32_t> slots, std::int64_t capacity, std::span<const std::int32_t> lengths,
                      int heads, std::int64_t width, AttentionRows<T> out, const PositionBias<T>& positions = {});

/// Computes the cross-attention of one decoding step: row r of the query attends to the encoder's output for the
/// sentence sentence_of_row[r]. `memory` says which rows of keys and values belong to which sentence. Both arrays are
/// in the memory of the device.
///
/// Shapes: query R rows of D columns, keys and values a row for each source token -> out [R, D]. The query's rows for
/// the same sentence should be neighbours, because they are then computed together. A row's result does not depend on
/// the other rows, bit for bit.
template <class T>
void memory_attention(CpuContext& device, RowView<T> query, CachedRows<T> keys, CachedRows<T> values,
                      PackedOffsets memory, std::span<const std::int32_t> sentence_of_row, int heads,
                      std::int64_t width, AttentionRows<T> out);
template <class T>
void memory_attention(CudaContext& device, RowView<T> query, CachedRows<T> keys, CachedRows<T> values,
                      PackedOffsets memory, std::span<const std::int32_t> sentence_of_row, int heads,
                      std::int64_t width, AttentionRows<T> out);

/// Computes the additive self-attention of one decoding step over a key/value cache, with the arguments and promises of
/// cached_attention() and the formula of additive_attention(). Shape: scorer [D].
template <class T>
void additive_cached_attention(CpuContext& device, RowView<T> query, const T* scorer, CachedRows<T> keys,
                               CachedRows<T> values, std::span<const std::int32_t> slots, std::int64_t capacity,
                               std::span<const std::int32_t> lengths, int heads, std::int64_t width,
                               AttentionRows<T> out);
template <class T>
void additive_cached_attention(CudaContext& device, RowView<T> query, const T* scorer, CachedRows<T> keys,
                               CachedRows<T> values, std::span<const std::int32_t> slots, std::int64_t capacity,
                               std::span<const std::int32_t> lengths, int heads, std::int64_t width,
                               AttentionRows<T> out);

/// Computes the additive cross-attention of one decoding step, with the arguments and promises of memory_attention()
/// and the formula of additive_attention(). Shape: scorer [D].
template <class T>
void additive_memory_attention(CpuContext& device, RowView<T> query, const T* scorer, CachedRows<T> keys,
                               CachedRows<T> values, PackedOffsets memory,
                               std::span<const std::int32_t> sentence_of_row, int heads, std::int64_t width,
                               AttentionRows<T> out);
template <class T>
void additive_memory_attention(CudaContext& device, RowView<T> query, const T* scorer, CachedRows<T> keys,
                               CachedRows<T> values, PackedOffsets memory,
                               std::span<const std::int32_t> sentence_of_row, int heads, std::int64_t width,
                               AttentionRows<T> out);

}  // namespace heed
