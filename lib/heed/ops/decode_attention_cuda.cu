// The idea: a block of threads computes one head of one row of the query. It walks over the keys, 128 at a time. Each
// warp scores four keys at once, with the columns spread over its lanes; then each thread has one key, and the block
// adds the values. The softmax is that of Milakov and Gimelshein (2018): where a later key has a larger logit, the sums
// so far are scaled down. Thus the memory that a block needs does not depend on the number of keys. What a block
// computes depends on its own row alone.
#include "heed/ops/decode_attention.h"

#include <cmath>
#include <type_traits>
#include <vector>

#include "heed/tensor/cuda_language.h"

namespace heed {
namespace {

constexpr int kKeys = 128;  // the keys of a step, and the threads of a block
constexpr int kWarps = kKeys / 32;
constexpr int kAtOnce = 4;  // the keys that a warp scores at once

/// The keys to which a row of the query attends.
struct RowKeys {
  /// The first key: an index of `slots`, or, without slots, of a row of the cache.
  std::int64_t first;
  std::int64_t length;
  std::int64_t weights_at;  ///< the row's first attention weight in weights_out
};

/// The operands of the kernel, in the memory of the GPU. Null pointers: absent.
template <class T>
struct DecodeOperands {
  RowView<T> query;
  const T* scorer;  ///< without it, the scores are dot products
  CachedRows<T> keys, values;
  const RowKeys* rows;
  const std::int32_t* slots;
  const T *bias, *relative_keys, *relative_values;
  std::int64_t bias_stride, longest, distance;
  std::int64_t width, d, heads;
  T *out, *weights_out;
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
  const std::int64_t c = t - (length - 1) + a.distance;
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
  const RowKeys row = a.rows[r];
  const T* const query = a.query.data + r * a.query.stride + head * d;
  const T* const scorer = a.scorer ? a.scorer + head * d : nullptr;
  T* const weights_out = a.weights_out ? a.weights_out + row.weights_at + head * row.length : nullptr;
  const T factor = scorer ? T(1) : 1 / std::sqrt(static_cast<T>(d)), never = static_cast<T>(-INFINITY);

  T largest = never, total = 0;
  for (std::int64_t c = lane; c < d; c += 32) sums[warp * d + c] = 0;
  for (std::int64_t begin = 0; begin < row.length; begin += kKeys) {
    const std::int64_t left = row.length - begin, t = begin + thread;
    const int count = left < kKeys ? static_cast<int>(left) : kKeys;
    __syncthreads();
    if (thread < count)
      cache_rows[thread] = a.slots ? a.slots[row.first + t] : static_cast<std::int32_t>(row.first + t);
    __syncthreads();
    for (int first = warp * kAtOnce; first < count; first += kWarps * kAtOnce) {
      HeadNumbers<T, Stored> keys[kAtOnce];
      const T* relative[kAtOnce] = {};
      T scores[kAtOnce] = {};
      for (int i = 0; i < kAtOnce; ++i) {
        const int j = first + i < count ? first + i : count - 1;
        keys[i] = head_numbers<T, Stored>(a.keys, cache_rows[j], head, d);
        if (a.relative_keys) relative[i] = relative_vector(a, a.relative_keys, row.length, begin + j);
      }
      for (std::int64_t c = lane; c < d; c += 32)
        for (int i = 0; i < kAtOnce; ++i) {
          const T key = a.relative_keys ? keys[i][c] + relative[i][c] : keys[i][c];
          scores[i] += scorer ? scorer[c] * std::tanh(query[c] + key) : query[c] * key;
        }
      for (int i = 0; i < kAtOnce; ++i) {
        const T score = factor * warp_sum(scores[i]);
        if (lane == i && first + i < count) weights[first + i] = score;
      }
    }
    __syncthreads();
    T s = thread < count ? weights[thread] : never;
    if (a.bias && thread < count) s += a.bias[head * a.bias_stride + a.longest - row.length + t];
    if (weights_out && thread < count) weights_out[t] = s;
    const T of_step = block_max(s, scratch), now = of_step > largest ? of_step : largest;
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
        if (a.relative_values) value += relative_vector(a, a.relative_values, row.length, begin + j)[c];
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
  // Each thread reads the logits that it has written itself.
  if (!weights_out) return;
  for (std::int64_t t = thread; t < row.length; t += kKeys)
    weights_out[t] = inverse * std::exp(weights_out[t] - largest);
}

/// Runs the kernel for the rows of the query, of which `rows` lists the keys. The operands `rows` and `slots` are set
/// by this function.
template <class T>
void run(CudaContext& device, DecodeOperands<T> a, std::span<const RowKeys> rows,
         std::span<const std::int32_t> slots = {}) {
  const ArenaScope scope(device.arena);
  a.rows = upload(device, rows);
  a.slots = slots.empty() ? nullptr : upload(device, slots);
  const LaunchShape shape{
      static_cast<unsigned>(std::ssize(rows) * a.heads), kKeys,
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
  std::vector<RowKeys> rows;
  std::int32_t longest = 0;
  for (const std::int32_t length : lengths) {
    rows.push_back({std::ssize(rows) * capacity, length, 0});
    longest = std::max(longest, length);
  }
  PositionArrays<T> arrays;
  if (positions) arrays = position_arrays("cached_attention", positions, heads, width / heads, longest, true);
  run<T>(device,
         {.query = query,
          .scorer = scorer,
          .keys = keys,
          .values = values,
          .rows = nullptr,
          .slots = nullptr,
          .bias = arrays.bias,
          .relative_keys = arrays.relative_keys,
          .relative_values = arrays.relative_values,
          .bias_stride = arrays.bias_stride,
          .longest = arrays.longest,
          .distance = arrays.distance,
          .width = width,
          .d = width / heads,
          .heads = heads,
          .out = out,
          .weights_out = nullptr},
         rows, slots);
}

/// Computes memory_attention(), or additive_memory_attention() where `scorer` is not null.
template <class T>
void attend_memory_rows(CudaContext& device, RowView<T> query, const T* scorer, CachedRows<T> keys,
                        CachedRows<T> values, PackedOffsets memory, std::span<const std::int32_t> sentence_of_row,
                        int heads, std::int64_t width, T* out, T* weights_out) {
  std::vector<RowKeys> rows;
  std::int64_t weights_at = 0;
  for (const std::int32_t sentence : sentence_of_row) {
    rows.push_back({memory.begin(sentence), memory.length(sentence), weights_at});
    weights_at += std::int64_t{heads} * memory.length(sentence);
  }
  run<T>(device,
         {.query = query,
          .scorer = scorer,
          .keys = keys,
          .values = values,
          .rows = nullptr,
          .slots = nullptr,
          .bias = nullptr,
          .relative_keys = nullptr,
          .relative_values = nullptr,
          .bias_stride = 0,
          .longest = 0,
          .distance = 0,
          .width = width,
          .d = width / heads,
          .heads = heads,
          .out = out,
          .weights_out = weights_out},
         rows);
}

}  // namespace

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
                      std::int64_t width, T* out, T* weights_out) {
  attend_memory_rows(device, query, static_cast<const T*>(nullptr), keys, values, memory, sentence_of_row, heads, width,
                     out, weights_out);
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
                               std::span<const std::int32_t> sentence_of_row, int heads, std::int64_t width, T* out,
                               T* weights_out) {
  attend_memory_rows(device, query, scorer, keys, values, memory, sentence_of_row, heads, width, out, weights_out);
}

#define HEED_INSTANTIATE(T)                                                                                           \
  template void cached_attention(CudaContext&, RowView<T>, CachedRows<T>, CachedRows<T>,                              \
                                 std::span<const std::int32_t>, std::int64_t, std::span<const std::int32_t>, int,     \
                                 std::int64_t, T*, const PositionBias<T>&);                                           \
  template void memory_attention(CudaContext&, RowView<T>, CachedRows<T>, CachedRows<T>, PackedOffsets,               \
                                 std::span<const std::int32_t>, int, std::int64_t, T*, T*);                           \
  template void additive_cached_attention(CudaContext&, RowView<T>, const T*, CachedRows<T>, CachedRows<T>,           \
                                          std::span<const std::int32_t>, std::int64_t, std::span<const std::int32_t>, \
                                          int, std::int64_t, T*);                                                     \
  template void additive_memory_attention(CudaContext&, RowView<T>, const T*, CachedRows<T>, CachedRows<T>,           \
                                          PackedOffsets, std::span<const std::int32_t>, int, std::int64_t, T*, T*);
HEED_INSTANTIATE(float)
HEED_INSTANTIATE(double)
#undef HEED_INSTANTIATE

}  // namespace heed
