#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "heed/tensor/context.h"
#include "heed/tensor/packed.h"

namespace heed {

/// Rows of D used columns, `stride` elements from row to row.
template <class T>
struct RowView {
  const T* data;
  std::int64_t stride;
};

/// How a cache holds keys and values: as they are, or, in inference at less precision, as integers of 16 bits with a
/// scale or of 8 bits with one for each head: less memory, and less time to read it, which is most of what a larger
/// model's attention takes.
enum class CacheFormat { exact, int16, int8 };

/// Keys or values as a cache holds them, `stride` bytes from row to row. `scales`: bytes from a row's beginning to its
/// scales, float32.
template <class T>
struct CachedRows {
  const std::byte* data;
  std::int64_t stride;
  CacheFormat format = CacheFormat::exact;
  std::int64_t scales = 0;
};

/// Writes a row for a cache as it is.
template <class T>
void cache_row(const T* from, std::int64_t columns, std::byte* to);
/// As integers: each number divided by the row's scale, max |x| / 32,767, or by its head's, max |x| / 127, and rounded
/// to the nearest. A scale is no number where one that it is for is not finite.
///
/// Shapes: from [columns], `columns` a multiple of heads -> to [columns], scale or scales [heads].
void cache_row(const float* from, std::int64_t columns, std::int16_t* to, float* scale);
void cache_row(const float* from, std::int64_t columns, int heads, std::int8_t* to, float* scales);

/// Self-attention of one step of decoding over a key/value cache (Vaswani et al. 2017, 3.2): row r attends over the
/// pool rows slots[r * capacity + t], t < lengths[r], so that reordering beams permutes the small slot table and never
/// the cache.
///
/// Shapes: query R rows of D = heads x d columns, keys and values the pool, slots [R, capacity], lengths [R] ->
/// out [R, D]. A row's result does not depend on the other rows, bit for bit. A row of length 0 gives zeros.
template <class T>
void cached_attention(CpuContext& device, RowView<T> query, CachedRows<T> keys, CachedRows<T> values,
                      std::span<const std::int32_t> slots, std::int64_t capacity, std::span<const std::int32_t> lengths,
                      int heads, std::int64_t width, T* out);

/// Cross-attention of one step of decoding: row r attends over the packed memory of sentence sentence_of_row[r].
///
/// Shapes: query R rows of D columns, keys and values S = memory.tokens() rows -> out [R, D]. `weights_out`, where
/// given, receives for each row [heads, length of its sentence], laid end to end. Rows of one sentence are best side by
/// side. A row's result does not depend on the other rows, bit for bit.
template <class T>
void memory_attention(CpuContext& device, RowView<T> query, CachedRows<T> keys, CachedRows<T> values,
                      PackedOffsets memory, std::span<const std::int32_t> sentence_of_row, int heads,
                      std::int64_t width, T* out, T* weights_out = nullptr);

}  // namespace heed
