// The idea: a warp computes one head of one row of the query, and no thread waits for another warp. A thread reads 16
// bytes at once, which are a part of a key: with a head of 64 columns of 16 bits, 8 lanes read a key, and the warp
// reads four keys with one access of each lane. Each group of such lanes has its own keys, and its own sums of the
// values, which are added up at the end. The keys and values of several accesses are on the way at once, before the
// first score is computed. The softmax is that of Milakov and Gimelshein (2018): where a later key has a larger logit,
// the sums so far are scaled down. Thus the memory that a warp needs does not depend on the number of keys. What a warp
// computes depends on its own row alone. The warps of a block have the same head of neighbouring rows: these are often
// hypotheses of the same sentence, which read the same keys.
#include "heed/ops/decode_attention.h"

#include <bit>
#include <cmath>
#include <type_traits>

#include "heed/ops/integers_cuda-inl.h"
#include "heed/tensor/cuda_language.h"
#include "heed/tensor/cuda_packs.h"

namespace heed {
namespace {

constexpr int kWarps = 4;   // of a block
constexpr int kAtOnce = 4;  // the keys that a group of lanes reads at once

/// The rows of a query, and the keys to which each of them attends: those of cached_attention() (slots, capacity and
/// lengths) or those of memory_attention() (offsets and sentences).
struct QueryRows {
  std::int64_t count = 0;
  const std::int32_t *slots = nullptr, *lengths = nullptr;
  std::int64_t capacity = 0;
  const std::int32_t *offsets = nullptr, *sentences = nullptr;
};

/// The keys of a row of the query: `length` keys from number `first` on, which is an index of QueryRows::slots or,
/// without slots, of a row of the cache.
struct RowKeys {
  std::int64_t first;
  int length;
};

__device__ RowKeys keys_of(const QueryRows& rows, std::int64_t r) {
  if (rows.slots) return {r * rows.capacity, rows.lengths[r]};
  const std::int32_t* const offsets = rows.offsets + rows.sentences[r];
  return {offsets[0], offsets[1] - offsets[0]};
}

/// The operands of the kernel, in the memory of the GPU. Null pointers: absent.
template <class T>
struct DecodeOperands {
  RowView<T> query;
  const T* scorer;  ///< without it, the scores are dot products
  CachedRows<T> keys, values;
  QueryRows rows;
  PositionArrays<T> positions;
  std::int64_t width;
  int heads, d;
  AttentionRows<T> out;
  /// How many lanes read a key, as a power of two, and how many times 16 bytes each of them reads.
  int lane_bits = 0, parts = 1;
  bool by_packs = false;  ///< whether the 16 bytes, and the numbers T beside them, may be read as packs

  /// Returns whether scores are dot products of query and key, without another term for each column, and a lane reads
  /// one pack of each key.
  bool is_simple() const {
    return !scorer && !positions.relative_keys && !positions.relative_values && parts == 1 && by_packs;
  }
};

/// 16 bytes of a row of the cache, which stay together until a number is used, because each number apart would take a
/// register.
template <class Stored>
struct RowPart {
  static constexpr int kSize = 16 / static_cast<int>(sizeof(Stored)), kBits = 128 / kSize;
  Pack<std::uint32_t, 4> words = {};

  __device__ Stored operator[](int i) const {
    if constexpr (kBits == 64)
      return std::bit_cast<Stored>(words[2 * i] | std::uint64_t{words[2 * i + 1]} << 32);
    else if constexpr (kBits == 32)
      return std::bit_cast<Stored>(words[i]);
    else
      return static_cast<Stored>(words[i * kBits / 32] >> i * kBits % 32);
  }
  /// Sets number i, which must be 0.
  __device__ void set(int i, Stored x) {
    if constexpr (kBits == 64) {
      words[2 * i] = static_cast<std::uint32_t>(std::bit_cast<std::uint64_t>(x));
      words[2 * i + 1] = static_cast<std::uint32_t>(std::bit_cast<std::uint64_t>(x) >> 32);
    } else if constexpr (kBits == 32) {
      words[i] = std::bit_cast<std::uint32_t>(x);
    } else {
      words[i * kBits / 32] |= std::uint32_t{static_cast<std::make_unsigned_t<Stored>>(x)} << i * kBits % 32;
    }
  }
};

/// Returns this lane's part of a head in one row of the cache: the columns from `column` on. Columns from d on are 0.
template <bool kSimple, class T, class Stored>
__device__ __forceinline__ RowPart<Stored> part_of_row(const DecodeOperands<T>& a, const CachedRows<T>& rows,
                                                       std::int64_t row, std::int64_t head, int column) {
  const auto* const from = reinterpret_cast<const Stored*>(rows.data + row * rows.stride) + head * a.d + column;
  if ((kSimple || a.by_packs) && column < a.d) return {load_pack<4>(reinterpret_cast<const std::uint32_t*>(from))};
  RowPart<Stored> out;
  HEED_UNROLL
  for (int i = 0; i < RowPart<Stored>::kSize && !kSimple; ++i)
    if (column + i < a.d) out.set(i, from[i]);
  return out;
}

/// Returns the scale of a head in one row of the cache.
template <class T, class Stored>
__device__ __forceinline__ T scale_of(const CachedRows<T>& rows, std::int64_t row, std::int64_t head) {
  if constexpr (std::is_same_v<T, Stored>) return T(1);
  const auto* const scales = reinterpret_cast<const float*>(rows.data + row * rows.stride + rows.scales);
  return static_cast<T>(scales[std::is_same_v<Stored, std::int8_t> ? head : 0]);
}

/// Reads the numbers from `column` on of a vector of d numbers; those from d on are 0.
template <int N, class T>
__device__ __forceinline__ Pack<T, N> read_part(const T* from, int column, int d, bool by_packs) {
  if (by_packs && column < d) return load_pack<N>(from + column);
  Pack<T, N> out;
  HEED_UNROLL
  for (int i = 0; i < N; ++i) out[i] = !by_packs && column + i < d ? from[column + i] : T(0);
  return out;
}

/// Writes the numbers from `column` on of a vector of d numbers.
template <int N, class T>
__device__ __forceinline__ void write_part(const Pack<T, N>& from, T* to, int column, int d, bool by_packs) {
  if (by_packs) {
    if (column < d) store_pack(from, to + column);
    return;
  }
  HEED_UNROLL
  for (int i = 0; i < N; ++i)
    if (column + i < d) to[column + i] = from[i];
}

/// Returns the relative vector of the key at position t among those of `vectors`, for a query at position length - 1.
template <class T>
__device__ const T* relative_vector(const DecodeOperands<T>& a, const T* vectors, int length, int t) {
  const std::int64_t c = t - (length - 1) + a.positions.distance;
  return vectors + (c > 0 ? c : 0) * a.d;
}

/// Combines the values of lanes whose numbers differ in the bits from `first` on, up to `end`, and returns the result
/// to each of them.
template <class T, class Combine>
__device__ __forceinline__ T combine_lanes(T value, int first, int end, const Combine& combine) {
  for (int bits = first; bits < end; bits *= 2) value = combine(value, __shfl_xor_sync(0xFFFFFFFF, value, bits));
  return value;
}
template <class T>
__device__ __forceinline__ T sum_of_lanes(T value, int first, int end) {
  return combine_lanes(value, first, end, [](T a, T b) { return a + b; });
}

/// With `kSimple`, DecodeOperands::is_simple() is true, and the kernel needs fewer registers.
template <class T, class Stored, bool kSimple>
__global__ void __launch_bounds__(32 * kWarps, kSimple && sizeof(T) == 4 ? (sizeof(Stored) == 1 ? 4 : 6) : 1)
    decode_attention_kernel(DecodeOperands<T> a) {
  constexpr int kSize = RowPart<Stored>::kSize;
  const int lane = lane_of_warp(), warp = static_cast<int>(threadIdx.x) / 32, lanes = 1 << a.lane_bits,
            group = lane >> a.lane_bits, groups = 32 >> a.lane_bits, d = a.d, parts = kSimple ? 1 : a.parts;
  const bool by_packs = kSimple || a.by_packs;
  const unsigned heads = static_cast<unsigned>(a.heads);
  const std::int64_t r = std::int64_t{blockIdx.x / heads} * kWarps + warp, head = blockIdx.x % heads;
  if (r >= a.rows.count) return;
  const RowKeys row = keys_of(a.rows, r);
  const PositionArrays<T>& terms = a.positions;
  const T factor = a.scorer ? T(1) : 1 / std::sqrt(static_cast<T>(d)), never = static_cast<T>(-INFINITY);
  // Returns the first column of a part of this lane.
  const auto column_of = [&](int part) { return (part * lanes + (lane & (lanes - 1))) * kSize; };
  // This lane's part of the query, and of the weighted sum of the values of this group. If the lane has several parts,
  // the other sums are in shared memory.
  Pack<T, kSize> query, sums = {};
  const auto read_query = [&](int part) {
    query = read_part<kSize>(a.query.data + r * a.query.stride + head * d, column_of(part), d, by_packs);
    HEED_UNROLL
    for (int i = 0; i < kSize; ++i) query[i] *= factor;
  };
  T* const other_sums = shared_memory<T>() + warp * parts * kSize * 32 + lane;
  const auto read_sums = [&](int part) {
    for (int i = 0; i < kSize; ++i) sums[i] = other_sums[(part * kSize + i) * 32];
  };
  const auto write_sums = [&](int part) {
    for (int i = 0; i < kSize; ++i) other_sums[(part * kSize + i) * 32] = sums[i];
  };
  read_query(0);
  for (int part = 0; parts > 1 && part < parts; ++part) write_sums(part);

  T largest = never, total = 0;
  for (int begin = 0; begin < row.length; begin += kAtOnce * groups) {
    std::int32_t cache_rows[kAtOnce];
    bool exists[kAtOnce];
    RowPart<Stored> keys[kAtOnce], values[kAtOnce];
    T key_scales[kAtOnce], value_scales[kAtOnce], scores[kAtOnce] = {};
    const auto position = [&](int u) { return begin + u * groups + group; };
    HEED_UNROLL
    for (int u = 0; u < kAtOnce; ++u) {
      const int t = position(u);
      exists[u] = t < row.length;
      const std::int64_t key = row.first + (exists[u] ? t : row.length - 1);
      cache_rows[u] = a.rows.slots ? a.rows.slots[key] : static_cast<std::int32_t>(key);
    }
    HEED_UNROLL
    for (int u = 0; u < kAtOnce; ++u) {
      keys[u] = part_of_row<kSimple, T, Stored>(a, a.keys, cache_rows[u], head, column_of(0));
      key_scales[u] = scale_of<T, Stored>(a.keys, cache_rows[u], head);
    }
    HEED_UNROLL
    for (int u = 0; u < kAtOnce; ++u) {
      values[u] = part_of_row<kSimple, T, Stored>(a, a.values, cache_rows[u], head, column_of(0));
      value_scales[u] = scale_of<T, Stored>(a.values, cache_rows[u], head);
    }

    for (int part = 0; part < parts; ++part) {
      if (parts > 1) read_query(part);
      Pack<T, kSize> scorer = {};
      if constexpr (!kSimple)
        if (a.scorer) scorer = read_part<kSize>(a.scorer + head * d, column_of(part), d, by_packs);
      HEED_UNROLL
      for (int u = 0; u < kAtOnce; ++u) {
        if (part > 0) keys[u] = part_of_row<kSimple, T, Stored>(a, a.keys, cache_rows[u], head, column_of(part));
        if constexpr (kSimple) {
          HEED_UNROLL
          for (int i = 0; i < kSize; ++i) scores[u] += query[i] * static_cast<T>(keys[u][i]);
        } else {
          Pack<T, kSize> relative = {};
          if (terms.relative_keys)
            relative = read_part<kSize>(
                relative_vector(a, terms.relative_keys, row.length, exists[u] ? position(u) : row.length - 1),
                column_of(part), d, by_packs);
          HEED_UNROLL
          for (int i = 0; i < kSize; ++i) {
            const T key = key_scales[u] * static_cast<T>(keys[u][i]) + relative[i];
            scores[u] += a.scorer ? scorer[i] * std::tanh(query[i] + key) : query[i] * key;
          }
        }
      }
    }
    T now = largest;
    HEED_UNROLL
    for (int u = 0; u < kAtOnce; ++u) {
      T score = sum_of_lanes(scores[u], 1, lanes);
      if (kSimple) score *= key_scales[u];
      if (terms.bias && exists[u])
        score += terms.bias[head * terms.bias_stride + terms.longest - row.length + position(u)];
      scores[u] = exists[u] ? score : never;
      now = larger(scores[u], now);
    }
    now = combine_lanes(now, lanes, 32, larger<T>);
    const T shrink = now > largest ? std::exp(largest - now) : T(1);
    largest = now;
    total *= shrink;
    HEED_UNROLL
    for (int u = 0; u < kAtOnce; ++u) {
      scores[u] = scores[u] == never ? T(0) : std::exp(scores[u] - now);  // the weights of the values, from here on
      total += scores[u];
    }

    for (int part = 0; part < parts; ++part) {
      if (parts > 1) read_sums(part);
      HEED_UNROLL
      for (int i = 0; i < kSize; ++i) sums[i] *= shrink;
      HEED_UNROLL
      for (int u = 0; u < kAtOnce; ++u) {
        if (!exists[u]) continue;
        if (part > 0) values[u] = part_of_row<kSimple, T, Stored>(a, a.values, cache_rows[u], head, column_of(part));
        const T weight = scores[u] * value_scales[u];
        HEED_UNROLL
        for (int i = 0; i < kSize; ++i) sums[i] += weight * static_cast<T>(values[u][i]);
        if constexpr (!kSimple)
          if (terms.relative_values) {
            const Pack<T, kSize> relative = read_part<kSize>(
                relative_vector(a, terms.relative_values, row.length, position(u)), column_of(part), d, by_packs);
            HEED_UNROLL
            for (int i = 0; i < kSize; ++i) sums[i] += scores[u] * relative[i];
          }
      }
      if (parts > 1) write_sums(part);
    }
  }

  total = sum_of_lanes(total, lanes, 32);
  const T inverse = row.length > 0 ? 1 / total : T(0);
  for (int part = 0; part < parts; ++part) {
    if (parts > 1) read_sums(part);
    HEED_UNROLL
    for (int i = 0; i < kSize; ++i) sums[i] = inverse * sum_of_lanes(sums[i], lanes, 32);
    if (group > 0) continue;
    const std::int64_t at = r * a.width + head * d;
    if (a.out.rounded)
      write_part(round_pack(sums), a.out.rounded + at, column_of(part), d, by_packs);
    else
      write_part(sums, a.out.full + at, column_of(part), d, by_packs);
  }
}

template <class T, class Stored>
void run(CudaContext& device, DecodeOperands<T> a) {
  constexpr int kSize = RowPart<Stored>::kSize;
  const int vectors = (a.d + kSize - 1) / kSize;
  a.lane_bits = std::min(5, static_cast<int>(std::bit_width(static_cast<unsigned>(vectors - 1))));
  a.parts = (vectors + (1 << a.lane_bits) - 1) >> a.lane_bits;
  const auto rows_take_packs = [](const CachedRows<T>& rows) {
    return rows.stride % 16 == 0 && takes_packs<4>(4, reinterpret_cast<const std::uint32_t*>(rows.data));
  };
  const PositionArrays<T>& terms = a.positions;
  a.by_packs = rows_take_packs(a.keys) && rows_take_packs(a.values) && a.query.stride % kSize == 0 &&
               a.width % kSize == 0 &&
               takes_packs<kSize>(a.d, a.query.data, a.scorer, terms.relative_keys, terms.relative_values,
                                  static_cast<const T*>(a.out.full), static_cast<const Bfloat16*>(a.out.rounded));
  const std::int64_t blocks = (a.rows.count + kWarps - 1) / kWarps * a.heads;
  const std::size_t sums = a.parts > 1 ? std::size_t{32 * kWarps * kSize} * static_cast<std::size_t>(a.parts) : 0;
  launch(device, {static_cast<unsigned>(blocks), 32 * kWarps, sums * sizeof(T)},
         a.is_simple() ? decode_attention_kernel<T, Stored, true> : decode_attention_kernel<T, Stored, false>, a);
}

template <class T>
void run(CudaContext& device, const DecodeOperands<T>& a) {
  if constexpr (sizeof(T) == sizeof(float)) {
    if (a.keys.format == CacheFormat::int16) return run<T, std::int16_t>(device, a);
    if (a.keys.format == CacheFormat::int8) return run<T, std::int8_t>(device, a);
  }
  run<T, T>(device, a);
}

/// Computes cached_attention(), or additive_cached_attention() where `scorer` is not null, without `positions`.
template <class T>
void attend_cached_rows(CudaContext& device, RowView<T> query, const T* scorer, CachedRows<T> keys,
                        CachedRows<T> values, std::span<const std::int32_t> slots, std::int64_t capacity,
                        std::span<const std::int32_t> lengths, int heads, std::int64_t width, AttentionRows<T> out,
                        const PositionBias<T>& positions = {}) {
  PositionArrays<T> terms;
  // The host does not know the lengths, so that it cannot check that the bias is for sequences of such a length.
  if (positions) terms = position_arrays("cached_attention", positions, heads, width / heads, 0, true);
  const QueryRows rows{
      .count = std::ssize(lengths), .slots = slots.data(), .lengths = lengths.data(), .capacity = capacity};
  run<T>(device, {query, scorer, keys, values, rows, terms, width, heads, static_cast<int>(width / heads), out});
}

/// Computes memory_attention(), or additive_memory_attention() where `scorer` is not null.
template <class T>
void attend_memory_rows(CudaContext& device, RowView<T> query, const T* scorer, CachedRows<T> keys,
                        CachedRows<T> values, PackedOffsets memory, std::span<const std::int32_t> sentence_of_row,
                        int heads, std::int64_t width, AttentionRows<T> out) {
  const QueryRows rows{
      .count = std::ssize(sentence_of_row), .offsets = memory.offsets.data(), .sentences = sentence_of_row.data()};
  run<T>(device, {query, scorer, keys, values, rows, {}, width, heads, static_cast<int>(width / heads), out});
}

/// Stores the numbers of this warp as cache_row() does, in packs of N. A warp has a group of `columns` numbers: those
/// of a head of a key or value with std::int8_t, and otherwise all of a key or value.
template <int N, class Stored>
__global__ void store_integers_kernel(RowView<float> kv, std::int64_t rows, int columns, CacheRecords records,
                                      const std::int32_t* places) {
  const unsigned groups = sizeof(Stored) == 1 ? 2 * static_cast<unsigned>(records.heads) : 2;
  const auto number = static_cast<unsigned>(IntegerTeam<N>::first_row());
  const std::int64_t r = number / groups, group = number % groups;
  if (r >= rows) return;
  std::byte* const record = records.data + (places ? places[r] : r) * records.stride;
  const float scale = store_integers<N>(kv.data + r * kv.stride + group * columns, columns,
                                        reinterpret_cast<Stored*>(record) + group * columns);
  if (lane_of_warp() == 0) reinterpret_cast<float*>(record + records.scales)[group] = scale;
}

template <class Stored>
void store_integers_in(CudaContext& device, RowView<float> kv, std::int64_t rows, std::int64_t width,
                       const CacheRecords& records, const std::int32_t* places) {
  constexpr int kPack = 4;
  const std::int64_t groups = 2 * records.scales_of_row(), columns = 2 * width / groups;
  const bool by_packs = takes_packs<kPack>(columns, kv.data, reinterpret_cast<const Stored*>(records.data)) &&
                        kv.stride % kPack == 0 && records.stride % (kPack * sizeof(Stored)) == 0;
  launch(device, shape_for_warps(rows * groups),
         by_packs ? store_integers_kernel<kPack, Stored> : store_integers_kernel<1, Stored>, kv, rows,
         static_cast<int>(columns), records, places);
}

template <class T>
__global__ void store_exactly_kernel(RowView<T> kv, std::int64_t rows, std::int64_t columns, CacheRecords records,
                                     const std::int32_t* places) {
  for_each_element(rows * columns, [&](std::int64_t i) {
    const std::int64_t r = i / columns, c = i % columns;
    std::byte* const record = records.data + (places ? places[r] : r) * records.stride;
    reinterpret_cast<T*>(record)[c] = kv.data[r * kv.stride + c];
  });
}

}  // namespace

template <class T>
void store_records(CudaContext& device, RowView<T> kv, std::int64_t rows, std::int64_t width,
                   const CacheRecords& records, std::span<const std::int32_t> places) {
  if constexpr (sizeof(T) == sizeof(float)) {
    if (records.format == CacheFormat::int16)
      return store_integers_in<std::int16_t>(device, kv, rows, width, records, places.data());
    if (records.format == CacheFormat::int8)
      return store_integers_in<std::int8_t>(device, kv, rows, width, records, places.data());
  }
  launch(device, shape_for_elements(rows * 2 * width), store_exactly_kernel<T>, kv, rows, 2 * width, records,
         places.data());
}

template <class T>
void cached_attention(CudaContext& device, RowView<T> query, CachedRows<T> keys, CachedRows<T> values,
                      std::span<const std::int32_t> slots, std::int64_t capacity, std::span<const std::int32_t> lengths,
                      int heads, std::int64_t width, AttentionRows<T> out, const PositionBias<T>& positions) {
  attend_cached_rows(device, query, static_cast<const T*>(nullptr), keys, values, slots, capacity, lengths, heads,
                     width, out, positions);
}

template <class T>
void memory_attention(CudaContext& device, RowView<T> query, CachedRows<T> keys, CachedRows<T> values,
                      PackedOffsets memory, std::span<const std::int32_t> sentence_of_row, int heads,
                      std::int64_t width, AttentionRows<T> out) {
  attend_memory_rows(device, query, static_cast<const T*>(nullptr), keys, values, memory, sentence_of_row, heads, width,
                     out);
}

template <class T>
void additive_cached_attention(CudaContext& device, RowView<T> query, const T* scorer, CachedRows<T> keys,
                               CachedRows<T> values, std::span<const std::int32_t> slots, std::int64_t capacity,
                               std::span<const std::int32_t> lengths, int heads, std::int64_t width,
                               AttentionRows<T> out) {
  attend_cached_rows(device, query, scorer, keys, values, slots, capacity, lengths, heads, width, out);
}

template <class T>
void additive_memory_attention(CudaContext& device, RowView<T> query, const T* scorer, CachedRows<T> keys,
                               CachedRows<T> values, PackedOffsets memory,
                               std::span<const std::int32_t> sentence_of_row, int heads, std::int64_t width,
                               AttentionRows<T> out) {
  attend_memory_rows(device, query, scorer, keys, values, memory, sentence_of_row, heads, width, out);
}

#define HEED_INSTANTIATE(T)                                                                                           \
  template void store_records(CudaContext&, RowView<T>, std::int64_t, std::int64_t, const CacheRecords&,              \
                              std::span<const std::int32_t>);                                                         \
  template void cached_attention(CudaContext&, RowView<T>, CachedRows<T>, CachedRows<T>,                              \
                                 std::span<const std::int32_t>, std::int64_t, std::span<const std::int32_t>, int,     \
                                 std::int64_t, AttentionRows<T>, const PositionBias<T>&);                             \
  template void memory_attention(CudaContext&, RowView<T>, CachedRows<T>, CachedRows<T>, PackedOffsets,               \
                                 std::span<const std::int32_t>, int, std::int64_t, AttentionRows<T>);                 \
  template void additive_cached_attention(CudaContext&, RowView<T>, const T*, CachedRows<T>, CachedRows<T>,           \
                                          std::span<const std::int32_t>, std::int64_t, std::span<const std::int32_t>, \
                                          int, std::int64_t, AttentionRows<T>);                                       \
  template void additive_memory_attention(CudaContext&, RowView<T>, const T*, CachedRows<T>, CachedRows<T>,           \
                                          PackedOffsets, std::span<const std::int32_t>, int, std::int64_t,            \
                                          AttentionRows<T>);
HEED_INSTANTIATE(float)
HEED_INSTANTIATE(double)
#undef HEED_INSTANTIATE

}  // namespace heed
