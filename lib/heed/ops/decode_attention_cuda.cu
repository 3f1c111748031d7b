// The idea: a block of threads computes one head of one row of the query. It walks over the keys, 128 at a time. Each
// warp scores four keys at once, with the columns spread over its lanes; then each thread has one key, and the block
// adds the values. The softmax is that of Milakov and Gimelshein (2018): where a later key has a larger logit, the sums
// so far are scaled down. Thus the memory that a block needs does not depend on the number of keys. What a block
// computes depends on its own row alone.
#include "heed/ops/decode_attention.h"

#include <cmath>
#include <type_traits>

#include "heed/ops/integers_cuda-inl.h"
#include "heed/tensor/cuda_language.h"

namespace heed {
namespace {

constexpr int kKeys = 128;  // the keys of a step, and the threads of a block
constexpr int kWarps = kKeys / 32;
constexpr int kAtOnce = 4;  // the keys that a warp scores at once

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
  std::int64_t first, length;
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
  std::int64_t width, d, heads;
  T* out;
};

/// The numbers of one head in one row of the cache. `Stored` is the type of the numbers in the cache: T, or an integer
/// type with scales.
template <class T, class Stored>
struct HeadNumbers {
  const Stored* stored;
  T scale;

  __device__ T operator[](std::int64_t c) const {
    if constexpr (std::is_same_v<T, Stored>)
      return stored[c];
    else
      return scale * static_cast<T>(stored[c]);
  }
};

template <class T, class Stored>
__device__ HeadNumbers<T, Stored> head_numbers(const CachedRows<T>& rows, std::int64_t row, std::int64_t head,
                                               std::int64_t d) {
  const std::byte* const bytes = rows.data + row * rows.stride;
  T scale = 1;
  if constexpr (!std::is_same_v<T, Stored>)
    scale = static_cast<T>(
        reinterpret_cast<const float*>(bytes + rows.scales)[std::is_same_v<Stored, std::int8_t> ? head : 0]);
  return {reinterpret_cast<const Stored*>(bytes) + head * d, scale};
}

/// Returns the relative vector of the key at position t among those of `vectors`, for a query at position length - 1.
template <class T>
__device__ const T* relative_vector(const DecodeOperands<T>& a, const T* vectors, std::int64_t length, std::int64_t t) {
  const std::int64_t c = t - (length - 1) + a.positions.distance;
  return vectors + (c > 0 ? c : 0) * a.d;
}

template <class T, class Stored>
__global__ void decode_attention_kernel(DecodeOperands<T> a) {
  // In shared memory: the scores of the keys of this step, and then their weights; for each warp, the weighted sums of
  // its values [kWarps, d]; the scratch memory of block_sum(); and the rows of the cache that hold the keys.
  T *const weights = shared_memory<T>(), *const sums = weights + kKeys, *const scratch = sums + kWarps * a.d;
  auto* const cache_rows = reinterpret_cast<std::int32_t*>(scratch + kWarps);
  const std::int64_t r = blockIdx.x / a.heads, head = blockIdx.x % a.heads, d = a.d;
  const int thread = static_cast<int>(threadIdx.x), lane = lane_of_warp(), warp = thread / 32;
  const RowKeys row = keys_of(a.rows, r);
  const PositionArrays<T>& terms = a.positions;
  const T* const query = a.query.data + r * a.query.stride + head * d;
  const T* const scorer = a.scorer ? a.scorer + head * d : nullptr;
  const T factor = scorer ? T(1) : 1 / std::sqrt(static_cast<T>(d)), never = static_cast<T>(-INFINITY);

  T largest = never, total = 0;
  for (std::int64_t c = lane; c < d; c += 32) sums[warp * d + c] = 0;
  for (std::int64_t begin = 0; begin < row.length; begin += kKeys) {
    const std::int64_t left = row.length - begin, t = begin + thread;
    const int count = left < kKeys ? static_cast<int>(left) : kKeys;
    __syncthreads();
    if (thread < count)
      cache_rows[thread] = a.rows.slots ? a.rows.slots[row.first + t] : static_cast<std::int32_t>(row.first + t);
    __syncthreads();
    for (int first = warp * kAtOnce; first < count; first += kWarps * kAtOnce) {
      HeadNumbers<T, Stored> keys[kAtOnce];
      const T* relative[kAtOnce] = {};
      T scores[kAtOnce] = {};
      for (int i = 0; i < kAtOnce; ++i) {
        const int j = first + i < count ? first + i : count - 1;
        keys[i] = head_numbers<T, Stored>(a.keys, cache_rows[j], head, d);
        if (terms.relative_keys) relative[i] = relative_vector(a, terms.relative_keys, row.length, begin + j);
      }
      for (std::int64_t c = lane; c < d; c += 32)
        for (int i = 0; i < kAtOnce; ++i) {
          const T key = terms.relative_keys ? keys[i][c] + relative[i][c] : keys[i][c];
          scores[i] += scorer ? scorer[c] * std::tanh(query[c] + key) : query[c] * key;
        }
      for (int i = 0; i < kAtOnce; ++i) {
        const T score = factor * warp_sum(scores[i]);
        if (lane == i && first + i < count) weights[first + i] = score;
      }
    }
    __syncthreads();
    T s = thread < count ? weights[thread] : never;
    if (terms.bias && thread < count) s += terms.bias[head * terms.bias_stride + terms.longest - row.length + t];
    const T now = larger(block_max(s, scratch), largest);
    const T shrink = now > largest ? std::exp(largest - now) : T(1);
    const T p = s == never ? T(0) : std::exp(s - now);
    total = total * shrink + block_sum(p, scratch);
    largest = now;
    weights[thread] = p;
    __syncthreads();
    for (std::int64_t c = lane; c < d; c += 32) {
      T sum = sums[warp * d + c] * shrink;
      for (int j = warp; j < count; j += kWarps) {
        T value = head_numbers<T, Stored>(a.values, cache_rows[j], head, d)[c];
        if (terms.relative_values) value += relative_vector(a, terms.relative_values, row.length, begin + j)[c];
        sum += weights[j] * value;
      }
      sums[warp * d + c] = sum;
    }
  }
  __syncthreads();
  const T inverse = row.length > 0 ? 1 / total : T(0);
  for (std::int64_t c = thread; c < d; c += kKeys) {
    T sum = 0;
    for (int w = 0; w < kWarps; ++w) sum += sums[w * d + c];
    a.out[r * a.width + head * d + c] = inverse * sum;
  }
}

template <class T>
void run(CudaContext& device, const DecodeOperands<T>& a) {
  const LaunchShape shape{
      static_cast<unsigned>(a.rows.count * a.heads), kKeys,
      static_cast<std::size_t>(kKeys + kWarps * a.d + kWarps) * sizeof(T) + kKeys * sizeof(std::int32_t)};
  if constexpr (sizeof(T) == sizeof(float)) {
    if (a.keys.format == CacheFormat::int16) return launch(device, shape, decode_attention_kernel<T, std::int16_t>, a);
    if (a.keys.format == CacheFormat::int8) return launch(device, shape, decode_attention_kernel<T, std::int8_t>, a);
  }
  launch(device, shape, decode_attention_kernel<T, T>, a);
}

/// Computes cached_attention(), or additive_cached_attention() where `scorer` is not null, without `positions`.
template <class T>
void attend_cached_rows(CudaContext& device, RowView<T> query, const T* scorer, CachedRows<T> keys,
                        CachedRows<T> values, std::span<const std::int32_t> slots, std::int64_t capacity,
                        std::span<const std::int32_t> lengths, int heads, std::int64_t width, T* out,
                        const PositionBias<T>& positions = {}) {
  PositionArrays<T> terms;
  // The host does not know the lengths, so that it cannot check that the bias is for sequences of such a length.
  if (positions) terms = position_arrays("cached_attention", positions, heads, width / heads, 0, true);
  const QueryRows rows{
      .count = std::ssize(lengths), .slots = slots.data(), .lengths = lengths.data(), .capacity = capacity};
  run<T>(device, {query, scorer, keys, values, rows, terms, width, width / heads, heads, out});
}

/// Computes memory_attention(), or additive_memory_attention() where `scorer` is not null.
template <class T>
void attend_memory_rows(CudaContext& device, RowView<T> query, const T* scorer, CachedRows<T> keys,
                        CachedRows<T> values, PackedOffsets memory, std::span<const std::int32_t> sentence_of_row,
                        int heads, std::int64_t width, T* out) {
  const QueryRows rows{
      .count = std::ssize(sentence_of_row), .offsets = memory.offsets.data(), .sentences = sentence_of_row.data()};
  run<T>(device, {query, scorer, keys, values, rows, {}, width, width / heads, heads, out});
}

/// Stores the numbers of this block as cache_row() does. A block has a group of `columns` numbers: those of a head of a
/// key or value with std::int8_t, and otherwise all of a key or value.
template <class Stored>
__global__ void store_integers_kernel(RowView<float> kv, std::int64_t columns, CacheRecords records,
                                      const std::int32_t* places) {
  const std::int64_t groups = sizeof(Stored) == 1 ? 2 * records.heads : 2, r = blockIdx.x / groups,
                     group = blockIdx.x % groups;
  std::byte* const record = records.data + (places ? places[r] : r) * records.stride;
  const float scale = store_integers(kv.data + r * kv.stride + group * columns, columns,
                                     reinterpret_cast<Stored*>(record) + group * columns);
  if (threadIdx.x == 0) reinterpret_cast<float*>(record + records.scales)[group] = scale;
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
    const std::int64_t groups = 2 * records.scales_of_row(), columns = 2 * width / groups;
    const LaunchShape shape = shape_for_rows<float>(rows * groups, columns);
    if (records.format == CacheFormat::int16)
      return launch(device, shape, store_integers_kernel<std::int16_t>, kv, columns, records, places.data());
    if (records.format == CacheFormat::int8)
      return launch(device, shape, store_integers_kernel<std::int8_t>, kv, columns, records, places.data());
  }
  launch(device, shape_for_elements(rows * 2 * width), store_exactly_kernel<T>, kv, rows, 2 * width, records,
         places.data());
}

template <class T>
void cached_attention(CudaContext& device, RowView<T> query, CachedRows<T> keys, CachedRows<T> values,
                      std::span<const std::int32_t> slots, std::int64_t capacity, std::span<const std::int32_t> lengths,
                      int heads, std::int64_t width, T* out, const PositionBias<T>& positions) {
  attend_cached_rows(device, query, static_cast<const T*>(nullptr), keys, values, slots, capacity, lengths, heads,
                     width, out, positions);
}

template <class T>
void memory_attention(CudaContext& device, RowView<T> query, CachedRows<T> keys, CachedRows<T> values,
                      PackedOffsets memory, std::span<const std::int32_t> sentence_of_row, int heads,
                      std::int64_t width, T* out) {
  attend_memory_rows(device, query, static_cast<const T*>(nullptr), keys, values, memory, sentence_of_row, heads, width,
                     out);
}

template <class T>
void additive_cached_attention(CudaContext& device, RowView<T> query, const T* scorer, CachedRows<T> keys,
                               CachedRows<T> values, std::span<const std::int32_t> slots, std::int64_t capacity,
                               std::span<const std::int32_t> lengths, int heads, std::int64_t width, T* out) {
  attend_cached_rows(device, query, scorer, keys, values, slots, capacity, lengths, heads, width, out);
}

template <class T>
void additive_memory_attention(CudaContext& device, RowView<T> query, const T* scorer, CachedRows<T> keys,
                               CachedRows<T> values, PackedOffsets memory,
                               std::span<const std::int32_t> sentence_of_row, int heads, std::int64_t width, T* out) {
  attend_memory_rows(device, query, scorer, keys, values, memory, sentence_of_row, heads, width, out);
}

#define HEED_INSTANTIATE(T)                                                                                           \
  template void store_records(CudaContext&, RowView<T>, std::int64_t, std::int64_t, const CacheRecords&,              \
                              std::span<const std::int32_t>);                                                         \
  template void cached_attention(CudaContext&, RowView<T>, CachedRows<T>, CachedRows<T>,                              \
                                 std::span<const std::int32_t>, std::int64_t, std::span<const std::int32_t>, int,     \
                                 std::int64_t, T*, const PositionBias<T>&);                                           \
  template void memory_attention(CudaContext&, RowView<T>, CachedRows<T>, CachedRows<T>, PackedOffsets,               \
                                 std::span<const std::int32_t>, int, std::int64_t, T*);                               \
  template void additive_cached_attention(CudaContext&, RowView<T>, const T*, CachedRows<T>, CachedRows<T>,           \
                                          std::span<const std::int32_t>, std::int64_t, std::span<const std::int32_t>, \
                                          int, std::int64_t, T*);                                                     \
  template void additive_memory_attention(CudaContext&, RowView<T>, const T*, CachedRows<T>, CachedRows<T>,           \
                                          PackedOffsets, std::span<const std::int32_t>, int, std::int64_t, T*);
HEED_INSTANTIATE(float)
HEED_INSTANTIATE(double)
#undef HEED_INSTANTIATE

}  // namespace heed
