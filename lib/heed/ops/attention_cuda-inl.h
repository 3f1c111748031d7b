// What the kernels of attention on a GPU share: the operands in the memory of the GPU, the tiles into which the work is
// cut, and what an attention does to the product of a query and a key.
#pragma once

#include <cmath>
#include <vector>

#include "heed/ops/attention.h"
#include "heed/ops/column_sum_cuda-inl.h"
#include "heed/ops/dropout_cuda-inl.h"
#include "heed/tensor/cuda_language.h"

namespace heed {

/// Where a sequence lies in the batch.
struct SequencePlace {
  std::int32_t query_begin, queries, key_begin, keys;
  std::int64_t weights_at;             ///< the first attention weight of the sequence
  std::int64_t bias_begin, bias_step;  ///< the BiasRows of head 0
};

/// The first row of a tile: a query or a key of a sequence.
struct TileBegin {
  std::int32_t sequence, row;
};

/// Where kernels store the gradient of query, key or value: they add to `full`, or overwrite it where it is `empty`;
/// where `rounded` is not null, they overwrite that instead. Where both are null, the gradient is not wanted.
template <class T>
struct GradientPlace {
  T* full;
  Bfloat16* rounded;
  std::int64_t stride;
  bool empty;

  __host__ __device__ explicit operator bool() const { return full || rounded; }
  __device__ void store(std::int64_t row, std::int64_t column, T sum) const {
    const std::int64_t i = row * stride + column;
    if (rounded)
      rounded[i] = to_bfloat16(static_cast<float>(sum));
    else if (full)
      full[i] = empty ? sum : full[i] + sum;
  }
};

/// The operands of the kernels: AttentionArrays, in the memory of the GPU. Query, key, value and the gradient of the
/// result have elements E: T, or Bfloat16.
template <class T, class E = T>
struct AttentionOperands {
  const E *query, *key, *value, *out_gradient;
  GradientPlace<T> query_gradient, key_gradient, value_gradient;
  bool causal;
  std::int64_t query_stride, key_stride, value_stride, width, d;
  std::int32_t heads;
  std::int64_t tokens;  ///< the number of queries in the batch
  DropoutMask<T> mask;
  const T* weights_gradient;
  const T *bias, *relative_keys, *relative_values;
  std::int64_t bias_stride, distance, vectors;  ///< vectors: the number of relative vectors in use
  const SequencePlace* places;
  const TileBegin* tiles;  ///< a block for each tile and head
  /// The logarithm of the sum of exponentials of each softmax, [heads, tokens], where not null.
  T* normalisers;
  /// What the kernel of the queries computes for that of the keys: the sums of P G, [heads, tokens], and the products
  /// of queries and of gradients with the relative vectors, [heads, tokens, vectors].
  T *row_sums, *key_products, *value_products;
  /// The sums over the keys at each distance of the gradients of the logits and of the attention weights after the
  /// dropout, [heads, tokens, vectors].
  T *gradients_by_distance, *weights_by_distance;
  T* logit_gradients;  ///< the gradients of the logits, in the order of the attention weights, where not null
};

/// The tile of this block.
template <class T, class E = T>
struct AttentionTile {
  SequencePlace place;
  std::int32_t head, begin;
  const E *query, *key, *value, *out_gradient;  ///< of the sequence's first row and the head's first column
  std::int64_t weights_at;                      ///< of the head's first query
  std::int64_t softmax_at;                      ///< of the head's first query among the softmaxes of the batch

  __device__ explicit AttentionTile(const AttentionOperands<T, E>& a)
      : place(a.places[a.tiles[blockIdx.x / a.heads].sequence]),
        head(static_cast<std::int32_t>(blockIdx.x) % a.heads),
        begin(a.tiles[blockIdx.x / a.heads].row),
        query(a.query + place.query_begin * a.query_stride + head * a.d),
        key(a.key + place.key_begin * a.key_stride + head * a.d),
        value(a.value + place.key_begin * a.value_stride + head * a.d),
        out_gradient(a.out_gradient + place.query_begin * a.width + head * a.d),
        weights_at(place.weights_at + std::int64_t{head} * place.queries * place.keys),
        softmax_at(head * a.tokens + place.query_begin) {}
};

/// Returns the number of the relative vector of query i and key j.
template <class T, class E>
__device__ std::int64_t relative_vector(const AttentionOperands<T, E>& a, std::int64_t i, std::int64_t j) {
  const std::int64_t c = j - i + a.distance;
  return c < 0 ? 0 : c < a.vectors ? c : a.vectors - 1;
}

/// Returns the logit of query i and key j from their product, or minus infinity where the query does not attend to the
/// key. `key_products` are those of the query with the relative vectors; it may be null where there are none.
template <class T, class E, class Row>
__device__ T logit(const AttentionOperands<T, E>& a, const AttentionTile<T, E>& tile, Row i, Row j, T product, T scale,
                   const T* key_products) {
  if (i >= tile.place.queries || j >= tile.place.keys || (a.causal && j > i)) return static_cast<T>(-INFINITY);
  T sum = product * scale;
  if (key_products && a.relative_keys) sum += key_products[relative_vector(a, i, j)];
  if (a.bias) sum += a.bias[tile.head * a.bias_stride + tile.place.bias_begin + i * tile.place.bias_step + j];
  return sum;
}

template <class T, class E>
__device__ T scale_of(const AttentionOperands<T, E>& a) {
  return 1 / std::sqrt(static_cast<T>(a.d));
}

/// Returns the number of keys to which the `rows` queries of a tile attend.
template <class T, class E>
__device__ std::int64_t keys_of_tile(const AttentionOperands<T, E>& a, const AttentionTile<T, E>& tile,
                                     std::int64_t rows) {
  const std::int64_t keys = tile.place.keys, seen = tile.begin + rows;
  return a.causal && seen < keys ? seen : keys;
}

/// Computes the gradient of an attention weight before the dropout, for query i and key j, from the product of the
/// gradient of the query's result with the key's value. `value_products` may be null where there are no relative
/// vectors.
template <class T, class E, class Row>
__device__ T weight_gradient(const AttentionOperands<T, E>& a, const AttentionTile<T, E>& tile, Row i, Row j, T product,
                             const T* value_products) {
  const std::int64_t at = tile.weights_at + std::int64_t{i} * tile.place.keys + j;
  if (value_products && a.relative_values) product += value_products[relative_vector(a, i, j)];
  product = drop(product, a.mask, at);
  return a.weights_gradient ? product + a.weights_gradient[at] : product;
}

/// Adds the tiles of `tile_rows` rows of a sequence.
inline void add_tiles(std::vector<TileBegin>& tiles, int sequence, std::int32_t length, std::int32_t tile_rows) {
  for (std::int32_t row = 0; row < length; row += tile_rows) tiles.push_back({sequence, row});
}

/// Cuts each sequence of a batch, queries or keys, into tiles of `tile_rows` rows. Returns the tiles in memory of the
/// device's arena; `tiles` receives their number.
inline const TileBegin* upload_tiles(CudaContext& device, PackedOffsets rows, std::int32_t tile_rows,
                                     std::int64_t& tiles) {
  std::vector<TileBegin> begins;
  for (int b = 0; b < rows.sequences(); ++b) add_tiles(begins, b, rows.length(b), tile_rows);
  tiles = std::ssize(begins);
  return upload<TileBegin>(device, begins);
}

/// Returns the operands of the kernels, in memory of the device's arena. The caller sets query, key, value and their
/// strides, and the tiles.
template <class E, class T>
AttentionOperands<T, E> operands_of(CudaContext& device, const AttentionArrays<T>& a) {
  const PositionArrays<T>& positions = a.positions;
  std::vector<SequencePlace> places;
  std::int64_t weights_at = 0;
  for (int b = 0; b < a.queries.sequences(); ++b) {
    SequencePlace place{a.queries.begin(b), a.queries.length(b), a.keys.begin(b), a.keys.length(b), weights_at, 0, 0};
    if (positions.bias) {
      const BiasRows bias = positions.bias_rows(b, 0);
      place.bias_begin = bias.first;
      place.bias_step = bias.step;
    }
    weights_at += std::int64_t{a.heads} * place.queries * place.keys;
    places.push_back(place);
  }
  return {.query = nullptr,
          .key = nullptr,
          .value = nullptr,
          .out_gradient = nullptr,
          .query_gradient = {a.query_gradient, a.rounded.query_gradient, a.query_stride, a.overwrite_query_gradient},
          .key_gradient = {a.key_gradient, a.rounded.key_gradient, a.key_stride, a.overwrite_key_gradient},
          .value_gradient = {a.value_gradient, a.rounded.value_gradient, a.value_stride, a.overwrite_value_gradient},
          .causal = a.causal,
          .query_stride = 0,
          .key_stride = 0,
          .value_stride = 0,
          .width = a.width,
          .d = a.width / a.heads,
          .heads = a.heads,
          .tokens = a.queries.tokens(),
          .mask = a.mask,
          .weights_gradient = a.weights_gradient,
          .bias = positions.bias,
          .relative_keys = positions.relative_keys,
          .relative_values = positions.relative_values,
          .bias_stride = positions.bias_stride,
          .distance = positions.distance,
          .vectors = positions.relative_vectors(a.causal),
          .places = upload<SequencePlace>(device, places),
          .tiles = nullptr,
          .normalisers = nullptr,
          .row_sums = nullptr,
          .key_products = nullptr,
          .value_products = nullptr,
          .gradients_by_distance = nullptr,
          .weights_by_distance = nullptr,
          .logit_gradients = nullptr};
}

/// Prepares the operands that operands_of() returned for the backward pass: adds memory through which the backward
/// kernels pass results to each other. `kept` is the memory that the forward pass has filled (see attention_kept()).
template <class T, class E>
void prepare_backward(CudaContext& device, const AttentionArrays<T>& arrays, const T* kept,
                      AttentionOperands<T, E>& a) {
  a.normalisers = const_cast<T*>(kept);
  a.row_sums = device.arena.tensor<T>({a.heads, a.tokens}).data();
  if (arrays.positions.bias_gradient)
    a.logit_gradients =
        device.arena.tensor<T>({attention_weights_size(arrays.queries, arrays.keys, arrays.heads)}).data();
}

/// The number of sequences whose gradients of a bias one thread sums up.
constexpr int kBiasSequences = 16;

/// Sums the gradients of the logits that belong to the same element of the bias, for kBiasSequences sequences: element
/// c of head h gets sums[chunk, h, c].
template <class T, class E>
__global__ void bias_gradient_kernel(AttentionOperands<T, E> a, std::int32_t sequences, T* sums) {
  const std::int64_t columns = a.bias_stride, all = a.heads * columns;
  const std::int64_t chunks = (sequences + kBiasSequences - 1) / kBiasSequences;
  for_each_element(chunks * all, [&](std::int64_t e) {
    const std::int64_t head = e % all / columns, column = e % columns;
    const std::int32_t begin = static_cast<std::int32_t>(e / all) * kBiasSequences,
                       end = begin + kBiasSequences < sequences ? begin + kBiasSequences : sequences;
    T sum = 0;
    for (std::int32_t b = begin; b < end; ++b) {
      const SequencePlace& place = a.places[b];
      const T* const gradients = a.logit_gradients + place.weights_at + head * place.queries * place.keys;
      // With a step of -1 the queries share elements; otherwise each query has elements of its own.
      const std::int64_t at = column - place.bias_begin;
      const std::int64_t own = place.bias_step > 0 ? at / place.bias_step : 0;
      const std::int64_t first = place.bias_step > 0 ? own : 0, last = place.bias_step > 0 ? own + 1 : place.queries;
      for (std::int64_t i = first; i < last && i < place.queries; ++i) {
        const std::int64_t j = at - i * place.bias_step;
        if (at >= 0 || place.bias_step < 0)
          if (j >= 0 && j < place.keys && !(a.causal && j > i)) sum += gradients[i * place.keys + j];
      }
    }
    sums[e] = sum;
  });
}

/// Adds to `bias_gradient` the gradients of the logits, a.logit_gradients, that belong to the same element of the bias.
template <class T, class E>
void add_bias_gradient(CudaContext& device, const AttentionOperands<T, E>& a, std::int32_t sequences,
                       T* bias_gradient) {
  const Shape chunks{(sequences + kBiasSequences - 1) / kBiasSequences, a.heads * a.bias_stride};
  const Tensor<T> sums = device.arena.tensor<T>(chunks);
  launch(device, shape_for_elements(sums.size()), bias_gradient_kernel<T, E>, a, sequences, sums.data());
  add_column_sums(device, sums, Tensor<T>{bias_gradient, {a.heads * a.bias_stride}});
}

/// Computes attention by tensor cores (attention_mma_cuda.cu). Allowed where attends_in_bfloat16() is true.
void tensor_core_attention_forward(CudaContext& device, const AttentionArrays<float>& arrays, float* kept,
                                   MaybeRounded<float> out);
void tensor_core_attention_backward(CudaContext& device, const AttentionArrays<float>& arrays, const float* kept,
                                    MaybeRounded<float> out, MaybeRounded<float> out_gradient);

}  // namespace heed
