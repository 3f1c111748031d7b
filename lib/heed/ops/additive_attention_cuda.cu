#include "heed/ops/additive_attention.h"

#include <algorithm>
#include <vector>

#include "heed/ops/additive_scores_cuda-inl.h"
#include "heed/ops/column_sum_cuda-inl.h"
#include "heed/ops/dropout_cuda-inl.h"
#include "heed/ops/sequences_cuda-inl.h"
#include "heed/tensor/cuda_language.h"

namespace heed {
namespace {

/// The operands of the attention, in the memory of the GPU (see AttentionArrays).
template <class T>
struct Operands {
  const T *query, *key, *value, *scorer;
  std::int64_t query_stride, key_stride, value_stride, width, heads;
  bool causal;
  DropoutMask<T> mask;
  int sequences;
  const std::int32_t *queries, *keys;  ///< the offsets of the sequences
  const std::int64_t* weights_at;      ///< the first attention weight of each sequence
};

template <class T>
Operands<T> upload_operands(CudaContext& device, const AdditiveAttentionArrays<T>& arrays) {
  const AttentionArrays<T>& a = arrays.attention;
  std::vector<std::int64_t> weights_at;
  std::int64_t at = 0;
  for (int b = 0; b < a.queries.sequences(); ++b) {
    weights_at.push_back(at);
    at += std::int64_t{a.heads} * a.queries.length(b) * a.keys.length(b);
  }
  return {.query = a.query,
          .key = a.key,
          .value = a.value,
          .scorer = arrays.scorer,
          .query_stride = a.query_stride,
          .key_stride = a.key_stride,
          .value_stride = a.value_stride,
          .width = a.width,
          .heads = a.heads,
          .causal = a.causal,
          .mask = a.mask,
          .sequences = a.queries.sequences(),
          .queries = upload(device, a.queries.offsets),
          .keys = upload(device, a.keys.offsets),
          .weights_at = upload<std::int64_t>(device, weights_at)};
}

/// The query of a block: a row of the packed batch, and one of its heads.
struct BlockQuery {
  std::int64_t row, column;  ///< the row, and the head's first column
  std::int64_t key, keys;    ///< the first key of the sequence, and the number of its keys
  std::int64_t seen;         ///< the number of keys that the query attends to
  std::int64_t weights_at;   ///< the query's first attention weight
};

template <class T>
__device__ BlockQuery query_of_block(const Operands<T>& a) {
  const std::int64_t row = blockIdx.x / a.heads, head = blockIdx.x % a.heads;
  const std::int64_t b = sequence_of_row(a.queries, a.sequences, row), i = row - a.queries[b];
  const std::int64_t queries = a.queries[b + 1] - a.queries[b], keys = a.keys[b + 1] - a.keys[b];
  return {row,  head * (a.width / a.heads), a.keys[b],
          keys, a.causal ? i + 1 : keys,    a.weights_at[b] + (head * queries + i) * keys};
}

/// Each block computes the attention of one head of a query. The scores and then the attention weights before the
/// dropout lie in `weights`.
template <class T>
__global__ void forward_kernel(Operands<T> a, T* weights, T* out) {
  const BlockQuery q = query_of_block(a);
  const std::int64_t depth = a.width / a.heads, warps = blockDim.x / 32;
  T* const p = weights + q.weights_at;
  for (std::int64_t j = threadIdx.x / 32; j < q.seen; j += warps) {
    const T score = additive_score(a.query + q.row * a.query_stride + q.column,
                                   a.key + (q.key + j) * a.key_stride + q.column, a.scorer + q.column, depth);
    if (threadIdx.x % 32 == 0) p[j] = score;
  }
  __syncthreads();
  T largest = static_cast<T>(-INFINITY), sum = 0;
  for (std::int64_t j = threadIdx.x; j < q.seen; j += blockDim.x) largest = p[j] > largest ? p[j] : largest;
  largest = block_max(largest, shared_memory<T>());
  for (std::int64_t j = threadIdx.x; j < q.seen; j += blockDim.x) sum += p[j] = std::exp(p[j] - largest);
  sum = block_sum(sum, shared_memory<T>());
  for (std::int64_t j = threadIdx.x; j < q.keys; j += blockDim.x) p[j] = j < q.seen ? p[j] / sum : T(0);
  __syncthreads();
  for (std::int64_t c = q.column + threadIdx.x; c < q.column + depth; c += blockDim.x) {
    T mean = 0;
    for (std::int64_t j = 0; j < q.seen; ++j)
      mean += drop(p[j], a.mask, q.weights_at + j) * a.value[(q.key + j) * a.value_stride + c];
    out[q.row * a.width + c] = mean;
  }
}

/// Adds to a gradient, or overwrites it where it is empty.
template <class T>
__device__ void add_gradient(T value, bool empty, T& to) {
  to = empty ? value : to + value;
}

/// Each block computes, for one head of a query, the gradients of the scores `ds`, the gradient of the query, which may
/// be null, and the query's part of the gradient of the scorer, a row of `parts`, which may be null.
template <class T>
__global__ void query_gradient_kernel(Operands<T> a, const T* weights, const T* dout, const T* dweights, T* ds,
                                      T* dquery, bool query_empty, T* parts) {
  const BlockQuery q = query_of_block(a);
  const std::int64_t depth = a.width / a.heads, warps = blockDim.x / 32;
  const T* const p = weights + q.weights_at;
  T* const g = ds + q.weights_at;
  for (std::int64_t j = threadIdx.x / 32; j < q.seen; j += warps) {
    T product = 0;
    for (std::int64_t c = q.column + threadIdx.x % 32; c < q.column + depth; c += 32)
      product += dout[q.row * a.width + c] * a.value[(q.key + j) * a.value_stride + c];
    product = drop(warp_sum(product), a.mask, q.weights_at + j);
    if (threadIdx.x % 32 == 0) g[j] = dweights ? product + dweights[q.weights_at + j] : product;
  }
  __syncthreads();
  T sum = 0;
  for (std::int64_t j = threadIdx.x; j < q.seen; j += blockDim.x) sum += p[j] * g[j];
  sum = block_sum(sum, shared_memory<T>());
  for (std::int64_t j = threadIdx.x; j < q.seen; j += blockDim.x) g[j] = p[j] * (g[j] - sum);
  __syncthreads();
  for (std::int64_t c = q.column + threadIdx.x; c < q.column + depth; c += blockDim.x) {
    const std::int64_t at = q.row * a.query_stride + c;
    const TangentSums<T> sums = tangent_sums(a.query[at], q.seen, a.key + q.key * a.key_stride + c, a.key_stride, g, 1);
    if (dquery) add_gradient(a.scorer[c] * sums.slope, query_empty, dquery[at]);
    if (parts) parts[q.row * a.width + c] = sums.tangent;
  }
}

/// Each thread computes the gradients of a column of a key and of its value, each of which may be null. `ds` are the
/// gradients of the scores.
template <class T>
__global__ void key_gradient_kernel(Operands<T> a, std::int64_t rows, const T* weights, const T* ds, const T* dout,
                                    T* dkey, bool key_empty, T* dvalue, bool value_empty) {
  for_each_element(rows * a.width, [&](std::int64_t e) {
    const std::int64_t row = e / a.width, c = e % a.width, head = c / (a.width / a.heads);
    const std::int64_t b = sequence_of_row(a.keys, a.sequences, row), j = row - a.keys[b];
    const std::int64_t queries = a.queries[b + 1] - a.queries[b], keys = a.keys[b + 1] - a.keys[b];
    // The first query that attends to the key, the number of such queries, and the first one's weight for the key.
    const std::int64_t first = a.causal ? j : 0, count = queries - first, query = a.queries[b] + first;
    const std::int64_t at = a.weights_at[b] + (head * queries + first) * keys + j;
    if (dkey) {
      const T slope = tangent_sums(a.key[row * a.key_stride + c], count, a.query + query * a.query_stride + c,
                                   a.query_stride, ds + at, keys)
                          .slope;
      add_gradient(a.scorer[c] * slope, key_empty, dkey[row * a.key_stride + c]);
    }
    if (dvalue) {
      T sum = 0;
      for (std::int64_t i = 0; i < count; ++i)
        sum += drop(weights[at + i * keys], a.mask, at + i * keys) * dout[(query + i) * a.width + c];
      add_gradient(sum, value_empty, dvalue[row * a.value_stride + c]);
    }
  });
}

/// Returns the shape of a launch with a block for each head of each query.
template <class T>
LaunchShape shape_for_queries(const AttentionArrays<T>& a) {
  return shape_for_rows<T>(std::int64_t{a.queries.tokens()} * a.heads,
                           std::max<std::int64_t>(a.width / a.heads, a.keys.longest()));
}

}  // namespace

template <class T>
void additive_attention_forward(CudaContext& device, const AdditiveAttentionArrays<T>& arrays, T* weights, T* out) {
  const ArenaScope scope(device.arena);
  const AttentionArrays<T>& a = arrays.attention;
  const std::int64_t size = attention_weights_size(a.queries, a.keys, a.heads);
  if (weights)
    fill_on_gpu(device, weights + size, kAttentionSlack, T(0));
  else
    weights = device.arena.template tensor<T>({size}).data();
  launch(device, shape_for_queries(a), forward_kernel<T>, upload_operands(device, arrays), weights, out);
}

template <class T>
void additive_attention_backward(CudaContext& device, const AdditiveAttentionArrays<T>& arrays, const T* weights,
                                 const T* out_gradient) {
  const ArenaScope scope(device.arena);
  const AttentionArrays<T>& a = arrays.attention;
  const Operands<T> operands = upload_operands(device, arrays);
  const std::int64_t queries = a.queries.tokens(), keys = a.keys.tokens();
  T* const ds = device.arena.template tensor<T>({attention_weights_size(a.queries, a.keys, a.heads)}).data();
  T* const parts = arrays.scorer_gradient ? device.arena.template tensor<T>({queries, a.width}).data() : nullptr;
  launch(device, shape_for_queries(a), query_gradient_kernel<T>, operands, weights, out_gradient, a.weights_gradient,
         ds, a.query_gradient, a.overwrite_query_gradient, parts);
  launch(device, shape_for_elements(keys * a.width), key_gradient_kernel<T>, operands, keys, weights, ds, out_gradient,
         a.key_gradient, a.overwrite_key_gradient, a.value_gradient, a.overwrite_value_gradient);
  if (parts) add_column_sums<T>(device, parts, queries, a.width, a.width, arrays.scorer_gradient);
}

template void additive_attention_forward(CudaContext&, const AdditiveAttentionArrays<float>&, float*, float*);
template void additive_attention_forward(CudaContext&, const AdditiveAttentionArrays<double>&, double*, double*);
template void additive_attention_backward(CudaContext&, const AdditiveAttentionArrays<float>&, const float*,
                                          const float*);
template void additive_attention_backward(CudaContext&, const AdditiveAttentionArrays<double>&, const double*,
                                          const double*);

}  // namespace heed
