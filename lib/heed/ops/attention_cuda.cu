// The idea: a block of threads computes a tile of 16 queries of one head, and takes the keys 32 at a time. Each of the
// four warps has 4 of the queries, and each of the 32 lanes of a warp has one of the keys, so that the softmax of a
// query is a sum over the lanes of one warp.
// The logits of a tile are never stored. The softmax is that of Milakov and Gimelshein (2018): where a later key has a
// larger logit, the sums so far are scaled down. The backward pass computes the logits again (Dao et al. 2022), from
// the logarithm of each softmax's normaliser, which is all that the forward pass keeps. The gradients of the keys and
// values have a kernel of their own, in which a tile has 16 keys and walks over the queries, so that each element of a
// gradient is summed by one thread in a fixed order.
#include "heed/ops/attention.h"

#include <cmath>

#include "heed/ops/attention_cuda-inl.h"
#include "heed/ops/gemm/gemm.h"
#include "heed/tensor/cuda_language.h"

namespace heed {
namespace {

constexpr int kRows = 16, kColumns = 32;  // of a tile
constexpr int kWarps = 4, kRowsOfWarp = kRows / kWarps;
constexpr unsigned kThreads = kWarps * 32;
/// The number of elements from one row of a tile in shared memory to the next, so that the rows of a column lie in
/// different banks.
constexpr int kStride = kColumns + 1;
/// The numbers of elements in shared memory: a tile, and two operands of tile_products().
constexpr int kTile = kRows * kStride, kOperands = (kRows + kColumns) * kStride;

/// Returns the first of the rows of a tile that the warp has.
__device__ int first_row() {
  return static_cast<int>(threadIdx.x) / 32 * kRowsOfWarp;
}

/// Computes the products of the rows of two matrices: products[r] gets that of the warp's row r and the lane's row of
/// `columns`. Rows beyond row_count and column_count count as zeros. All threads of the block have to call this.
template <class T>
__device__ void tile_products(const T* rows, std::int64_t row_stride, std::int64_t row_count, const T* columns,
                              std::int64_t column_stride, std::int64_t column_count, std::int64_t depth, T* operands,
                              T (&products)[kRowsOfWarp]) {
  for (T& product : products) product = 0;
  for (std::int64_t begin = 0; begin < depth; begin += kColumns) {
    __syncthreads();
    for (int e = static_cast<int>(threadIdx.x); e < (kRows + kColumns) * kColumns; e += kThreads) {
      const int row = e / kColumns, column = e % kColumns;
      T element = 0;
      if (begin + column < depth) {
        if (row < kRows && row < row_count) element = rows[row * row_stride + begin + column];
        if (row >= kRows && row - kRows < column_count)
          element = columns[(row - kRows) * column_stride + begin + column];
      }
      operands[row * kStride + column] = element;
    }
    __syncthreads();
    const T *const of_row = operands + first_row() * kStride, *const of_lane =
                                                                  operands + (kRows + lane_of_warp()) * kStride;
    for (int c = 0; c < kColumns; ++c)
      for (int r = 0; r < kRowsOfWarp; ++r) products[r] += of_row[r * kStride + c] * of_lane[c];
  }
}

/// Adds to the rows of the warp in `sums` [kRows, d] the product of a tile, of which the warp has written the same
/// rows, and of `count` rows of a matrix with d columns.
template <class T>
__device__ void add_product(T* sums, const T* tile, const T* matrix, std::int64_t stride, std::int64_t count,
                            std::int64_t d) {
  __syncwarp();
  const T* const of_warp = tile + first_row() * kStride;
  for (std::int64_t c = lane_of_warp(); c < d; c += 32) {
    T row_sums[kRowsOfWarp] = {};
    for (std::int64_t j = 0; j < count && j < kColumns; ++j) {
      const T element = matrix[j * stride + c];
      for (int r = 0; r < kRowsOfWarp; ++r) row_sums[r] += of_warp[r * kStride + j] * element;
    }
    for (int r = 0; r < kRowsOfWarp; ++r) sums[(first_row() + r) * d + c] += row_sums[r];
  }
  __syncwarp();
}

/// Fills the rows of the warp in a matrix [kRows, columns] of shared memory with zeros.
template <class T>
__device__ void clear_rows(T* matrix, std::int64_t columns) {
  for (std::int64_t i = lane_of_warp(); i < kRowsOfWarp * columns; i += 32) matrix[first_row() * columns + i] = 0;
  __syncwarp();
}

/// Computes the products of a row of d numbers with the relative vectors, times `scale`.
template <class T>
__device__ void relative_products(const T* row, const T* relative, std::int64_t vectors, std::int64_t d, T scale,
                                  T* products) {
  for (std::int64_t c = lane_of_warp(); c < vectors; c += 32) {
    T sum = 0;
    for (std::int64_t i = 0; i < d; ++i) sum += row[i] * relative[c * d + i];
    products[c] = scale * sum;
  }
  __syncwarp();
}

/// Adds the numbers that the lanes of a warp have for query i and their keys j to the sum of the keys' distance. Only
/// the keys of the first and the last vector share a distance.
template <class T>
__device__ void add_by_distance(const AttentionOperands<T>& a, std::int64_t i, std::int64_t j, T number, T* sums) {
  const std::int64_t c = relative_vector(a, i, j), last = a.vectors - 1;
  const T before = warp_sum(c == 0 ? number : T(0)), after = warp_sum(c == last ? number : T(0));
  if (c > 0 && c < last) sums[c] += number;
  if (lane_of_warp() == 0) {
    sums[0] += before;
    if (last > 0) sums[last] += after;
  }
  __syncwarp();
}

/// Computes products of the queries of a tile and of 32 keys, from key j on.
template <class T>
__device__ void query_key_products(const AttentionOperands<T>& a, const AttentionTile<T>& tile, std::int64_t j,
                                   T* operands, T (&products)[kRowsOfWarp]) {
  tile_products(tile.query + tile.begin * a.query_stride, a.query_stride, std::int64_t{tile.place.queries} - tile.begin,
                tile.key + j * a.key_stride, a.key_stride, tile.place.keys - j, a.d, operands, products);
}

/// Computes the products of the warp's queries of a tile with the relative vectors of keys, if there are any:
/// `products` [kRows, vectors].
template <class T>
__device__ void relative_key_products(const AttentionOperands<T>& a, const AttentionTile<T>& tile, T* products) {
  if (!a.relative_keys) return;
  for (int row = first_row(); row < first_row() + kRowsOfWarp && tile.begin + row < tile.place.queries; ++row)
    relative_products(tile.query + (tile.begin + row) * a.query_stride, a.relative_keys, a.vectors, a.d, scale_of(a),
                      products + row * a.vectors);
}

template <class T>
__global__ void attention_kernel(AttentionOperands<T> a, T* out) {
  const AttentionTile<T> tile(a);
  T *const operands = shared_memory<T>(), *const weights = operands + kOperands, *const sums = weights + kTile,
           *const key_products = sums + kRows * a.d, *const by_distance = key_products + kRows * a.vectors;
  const T scale = scale_of(a);
  const int lane = lane_of_warp(), first = first_row();
  T largest[kRowsOfWarp], total[kRowsOfWarp] = {};
  for (T& each : largest) each = static_cast<T>(-INFINITY);
  relative_key_products(a, tile, key_products);
  clear_rows(sums, a.d);
  clear_rows(by_distance, a.vectors);

  const std::int64_t keys = keys_of_tile(a, tile, kRows);
  for (std::int64_t begin = 0; begin < keys; begin += kColumns) {
    T products[kRowsOfWarp];
    query_key_products(a, tile, begin, operands, products);
    const std::int64_t j = begin + lane;
    for (int r = 0; r < kRowsOfWarp; ++r) {
      const std::int64_t i = tile.begin + first + r;
      const T s = logit(a, tile, i, j, products[r], scale, key_products + (first + r) * a.vectors);
      const T now = larger(warp_max(s), largest[r]);
      const T never = static_cast<T>(-INFINITY);
      const T factor = largest[r] > never ? std::exp(largest[r] - now) : T(0);
      T p = s > never ? std::exp(s - now) : T(0);
      total[r] = total[r] * factor + warp_sum(p);
      largest[r] = now;
      if (factor != 1) {
        for (std::int64_t c = lane; c < a.d; c += 32) sums[(first + r) * a.d + c] *= factor;
        for (std::int64_t c = lane; c < a.vectors; c += 32) by_distance[(first + r) * a.vectors + c] *= factor;
      }
      __syncwarp();
      if (p > 0) p = drop(p, a.mask, tile.weights_at + i * tile.place.keys + j);
      weights[(first + r) * kStride + lane] = p;
      if (a.relative_values) add_by_distance(a, i, j, p, by_distance + (first + r) * a.vectors);
    }
    add_product(sums, weights, tile.value + begin * a.value_stride, a.value_stride, keys - begin, a.d);
  }
  for (int r = 0; r < kRowsOfWarp; ++r) {
    const std::int64_t i = tile.begin + first + r;
    if (i >= tile.place.queries) continue;
    const T inverse = total[r] > 0 ? 1 / total[r] : T(0);
    for (std::int64_t c = lane; c < a.d; c += 32) {
      T sum = sums[(first + r) * a.d + c];
      for (std::int64_t v = 0; v < a.vectors; ++v)
        sum += by_distance[(first + r) * a.vectors + v] * a.relative_values[v * a.d + c];
      out[(tile.place.query_begin + i) * a.width + tile.head * a.d + c] = inverse * sum;
    }
    if (a.normalisers && lane == 0) a.normalisers[tile.softmax_at + i] = largest[r] + std::log(total[r]);
  }
}

/// Computes the attention weights of a tile of queries, before the dropout, from the normalisers.
template <class T>
__global__ void attention_weights_kernel(AttentionOperands<T> a, T* weights) {
  const AttentionTile<T> tile(a);
  T *const operands = shared_memory<T>(), *const key_products = operands + kOperands;
  const T scale = scale_of(a);
  const int lane = lane_of_warp(), first = first_row();
  relative_key_products(a, tile, key_products);
  for (std::int64_t begin = 0; begin < tile.place.keys; begin += kColumns) {
    T products[kRowsOfWarp];
    query_key_products(a, tile, begin, operands, products);
    const std::int64_t j = begin + lane;
    for (int r = 0; r < kRowsOfWarp; ++r) {
      const std::int64_t i = tile.begin + first + r;
      if (i >= tile.place.queries || j >= tile.place.keys) continue;
      const T s = logit(a, tile, i, j, products[r], scale, key_products + (first + r) * a.vectors);
      weights[tile.weights_at + i * tile.place.keys + j] = std::exp(s - a.normalisers[tile.softmax_at + i]);
    }
  }
}

/// Computes the gradients of a tile of queries, and what the kernel of the keys needs of them.
template <class T>
__global__ void query_gradient_kernel(AttentionOperands<T> a) {
  const AttentionTile<T> tile(a);
  T *const operands = shared_memory<T>(), *const gradients = operands + kOperands, *const sums = gradients + kTile,
           *const by_distance = sums + kRows * a.d, *const weights_by_distance = by_distance + kRows * a.vectors;
  const T scale = scale_of(a);
  const int lane = lane_of_warp(), first = first_row();
  const std::int64_t keys = keys_of_tile(a, tile, kRows);
  const auto softmax_of = [&](int r) { return tile.softmax_at + tile.begin + first + r; };
  const auto is_query = [&](int r) { return tile.begin + first + r < tile.place.queries; };
  T normaliser[kRowsOfWarp];
  for (int r = 0; r < kRowsOfWarp; ++r) {
    normaliser[r] = is_query(r) ? a.normalisers[softmax_of(r)] : T(0);
    if (!a.relative_keys || !is_query(r)) continue;
    const std::int64_t i = tile.begin + first + r;
    relative_products(tile.query + i * a.query_stride, a.relative_keys, a.vectors, a.d, scale,
                      a.key_products + softmax_of(r) * a.vectors);
    relative_products(tile.out_gradient + i * a.width, a.relative_values, a.vectors, a.d, T(1),
                      a.value_products + softmax_of(r) * a.vectors);
  }
  clear_rows(sums, a.d);
  clear_rows(by_distance, a.vectors);
  clear_rows(weights_by_distance, a.vectors);

  // Calls body(r, i, j, p, g) for each pair of a query and a key that attends: the attention weight and its gradient.
  // Calls end(begin) after each 32 keys. All lanes of a warp call body(); where a lane has no pair, p and g are 0.
  const auto for_each_pair = [&](const auto& body, const auto& end) {
    for (std::int64_t begin = 0; begin < keys; begin += kColumns) {
      T products[kRowsOfWarp], value_products[kRowsOfWarp];
      query_key_products(a, tile, begin, operands, products);
      tile_products(tile.out_gradient + tile.begin * a.width, a.width, std::int64_t{tile.place.queries} - tile.begin,
                    tile.value + begin * a.value_stride, a.value_stride, tile.place.keys - begin, a.d, operands,
                    value_products);
      const std::int64_t j = begin + lane;
      for (int r = 0; r < kRowsOfWarp; ++r) {
        const std::int64_t i = tile.begin + first + r, at = softmax_of(r) * a.vectors;
        const T s = logit(a, tile, i, j, products[r], scale, a.key_products + at);
        const bool attends = s > static_cast<T>(-INFINITY);
        body(r, i, j, attends ? std::exp(s - normaliser[r]) : T(0),
             attends ? weight_gradient(a, tile, i, j, value_products[r], a.value_products + at) : T(0));
      }
      end(begin);
    }
  };

  T row_sums[kRowsOfWarp] = {};
  for_each_pair([&](int r, std::int64_t, std::int64_t, T p, T g) { row_sums[r] += p * g; }, [](std::int64_t) {});
  for (int r = 0; r < kRowsOfWarp; ++r) {
    row_sums[r] = warp_sum(row_sums[r]);
    if (is_query(r) && lane == 0) a.row_sums[softmax_of(r)] = row_sums[r];
  }
  for_each_pair(
      [&](int r, std::int64_t i, std::int64_t j, T p, T g) {
        const T ds = p * (g - row_sums[r]);
        gradients[(first + r) * kStride + lane] = scale * ds;
        const std::int64_t at = tile.weights_at + i * tile.place.keys + j;
        const bool is_pair = i < tile.place.queries && j < tile.place.keys;
        if (a.logit_gradients && is_pair) a.logit_gradients[at] = ds;
        if (!a.relative_keys) return;
        add_by_distance(a, i, j, scale * ds, by_distance + (first + r) * a.vectors);
        add_by_distance(a, i, j, p > 0 ? drop(p, a.mask, at) : p, weights_by_distance + (first + r) * a.vectors);
      },
      [&](std::int64_t begin) {
        add_product(sums, gradients, tile.key + begin * a.key_stride, a.key_stride, keys - begin, a.d);
      });

  for (int r = 0; r < kRowsOfWarp; ++r) {
    if (!is_query(r)) continue;
    const std::int64_t row = first + r, i = tile.begin + row;
    for (std::int64_t v = lane; v < a.vectors; v += 32) {
      a.gradients_by_distance[softmax_of(r) * a.vectors + v] = by_distance[row * a.vectors + v];
      a.weights_by_distance[softmax_of(r) * a.vectors + v] = weights_by_distance[row * a.vectors + v];
    }
    for (std::int64_t c = lane; c < a.d; c += 32) {
      T sum = sums[row * a.d + c];
      for (std::int64_t v = 0; v < a.vectors; ++v)
        sum += by_distance[row * a.vectors + v] * a.relative_keys[v * a.d + c];
      a.query_gradient.store(tile.place.query_begin + i, tile.head * a.d + c, sum);
    }
  }
}

/// Computes the gradients of a tile of keys and values.
template <class T>
__global__ void key_gradient_kernel(AttentionOperands<T> a) {
  const AttentionTile<T> tile(a);
  T *const operands = shared_memory<T>(), *const gradients = operands + kOperands, *const weights = gradients + kTile,
           *const key_sums = weights + kTile, *const value_sums = key_sums + kRows * a.d;
  const T scale = scale_of(a);
  const int lane = lane_of_warp(), first = first_row();
  clear_rows(key_sums, a.d);
  clear_rows(value_sums, a.d);
  const std::int64_t queries = tile.place.queries, keys = tile.place.keys;
  for (std::int64_t begin = a.causal ? tile.begin : 0; begin < queries; begin += kColumns) {
    T products[kRowsOfWarp], value_products[kRowsOfWarp];
    tile_products(tile.key + tile.begin * a.key_stride, a.key_stride, keys - tile.begin,
                  tile.query + begin * a.query_stride, a.query_stride, queries - begin, a.d, operands, products);
    tile_products(tile.value + tile.begin * a.value_stride, a.value_stride, keys - tile.begin,
                  tile.out_gradient + begin * a.width, a.width, queries - begin, a.d, operands, value_products);
    const std::int64_t i = begin + lane, softmax = tile.softmax_at + i;
    for (int r = 0; r < kRowsOfWarp; ++r) {
      const std::int64_t j = tile.begin + first + r;
      const T s = logit(a, tile, i, j, products[r], scale, a.key_products + softmax * a.vectors);
      T p = 0, ds = 0;
      if (s > static_cast<T>(-INFINITY)) {
        p = std::exp(s - a.normalisers[softmax]);
        ds = p * (weight_gradient(a, tile, i, j, value_products[r], a.value_products + softmax * a.vectors) -
                  a.row_sums[softmax]);
        p = drop(p, a.mask, tile.weights_at + i * keys + j);
      }
      gradients[(first + r) * kStride + lane] = scale * ds;
      weights[(first + r) * kStride + lane] = p;
    }
    add_product(key_sums, gradients, tile.query + begin * a.query_stride, a.query_stride, queries - begin, a.d);
    add_product(value_sums, weights, tile.out_gradient + begin * a.width, a.width, queries - begin, a.d);
  }
  for (int r = 0; r < kRowsOfWarp; ++r) {
    const std::int64_t row = first + r, j = tile.begin + row;
    if (j >= keys) continue;
    for (std::int64_t c = lane; c < a.d; c += 32) {
      const std::int64_t to = tile.place.key_begin + j, column = tile.head * a.d + c;
      a.key_gradient.store(to, column, key_sums[row * a.d + c]);
      a.value_gradient.store(to, column, value_sums[row * a.d + c]);
    }
  }
}

/// Copies the rows of a matrix of bfloat16 numbers to `to`; the rows of both begin `stride` elements apart.
template <class T>
__global__ void expand_kernel(const Bfloat16* x, T* to, std::int64_t stride, std::int64_t rows, std::int64_t columns) {
  for_each_element(rows * columns, [&](std::int64_t i) {
    const std::int64_t at = i / columns * stride + i % columns;
    to[at] = static_cast<T>(from_bfloat16(x[at]));
  });
}

/// Sets query, key and value of the operands. Those that are stored as bfloat16 alone are copied.
template <class T>
void set_operands(CudaContext& device, const AttentionArrays<T>& arrays, AttentionOperands<T>& a) {
  const auto in_full = [&](const T* full, const Bfloat16* rounded, std::int64_t stride, std::int64_t rows) {
    if (full || !rounded) return full;
    T* const to = device.arena.tensor<T>({rows, stride}).data();
    launch(device, shape_for_elements(rows * arrays.width), expand_kernel<T>, rounded, to, stride, rows, arrays.width);
    return static_cast<const T*>(to);
  };
  const std::int64_t queries = arrays.queries.tokens(), keys = arrays.keys.tokens();
  a.query = in_full(arrays.query, arrays.rounded.query, arrays.query_stride, queries);
  a.key = in_full(arrays.key, arrays.rounded.key, arrays.key_stride, keys);
  a.value = in_full(arrays.value, arrays.rounded.value, arrays.value_stride, keys);
  a.query_stride = arrays.query_stride;
  a.key_stride = arrays.key_stride;
  a.value_stride = arrays.value_stride;
}

/// Returns the shape of a launch with a block for each tile and head, whose shared memory holds the operands of
/// tile_products(), `tiles` tiles, and `columns` further columns for each of the kRows rows.
template <class T>
LaunchShape tile_shape(const AttentionOperands<T>& a, std::int64_t blocks, std::int64_t tiles, std::int64_t columns) {
  const std::int64_t elements = kOperands + tiles * kTile + kRows * columns;
  return {static_cast<unsigned>(blocks * a.heads), kThreads, static_cast<std::size_t>(elements) * sizeof(T)};
}

/// Adds to the gradient of the relative vectors the products of what each query has summed up by distance, `sums`
/// [heads, tokens, vectors], and of its row in `rows`.
template <class T>
void add_relative_gradient(CudaContext& device, const AttentionOperands<T>& a, const T* sums, const T* rows,
                           std::int64_t stride, T* gradient) {
  if (!gradient) return;
  for (std::int64_t h = 0; h < a.heads; ++h)
    gemm(device, a.vectors, a.d, a.tokens, T(1), GemmOperand<T>{sums + h * a.tokens * a.vectors, a.vectors, true},
         GemmOperand<T>{rows + h * a.d, stride}, T(1), gradient, a.d);
}

}  // namespace

template <class T>
T* attention_kept(CudaContext& device, const AttentionArrays<T>& arrays, bool recording) {
  if (!recording && !arrays.weights) return nullptr;
  return device.arena.tensor<T>({arrays.heads, arrays.queries.tokens()}).data();
}

template <class T>
void attention_forward(CudaContext& device, const AttentionArrays<T>& arrays, T* kept, MaybeRounded<T> out) {
  if constexpr (std::is_same_v<T, float>)
    if (attends_in_bfloat16(device, arrays)) return tensor_core_attention_forward(device, arrays, kept, out);
  const ArenaScope scope(device.arena);
  std::int64_t tiles = 0;
  AttentionOperands<T> a = operands_of<T>(device, arrays);
  a.tiles = upload_tiles(device, arrays.queries, kRows, tiles);
  set_operands(device, arrays, a);
  a.normalisers = kept;
  launch(device, tile_shape(a, tiles, 1, a.d + 2 * a.vectors), attention_kernel<T>, a, out.full.data());
  if (!arrays.weights) return;
  launch(device, tile_shape(a, tiles, 0, a.vectors), attention_weights_kernel<T>, a, arrays.weights);
  const std::int64_t size = attention_weights_size(arrays.queries, arrays.keys, arrays.heads);
  fill_on_gpu(device, arrays.weights + size, kAttentionSlack, T(0));
}

template <class T>
void attention_backward(CudaContext& device, const AttentionArrays<T>& arrays, const T* kept, MaybeRounded<T> out,
                        MaybeRounded<T> out_gradient) {
  if constexpr (std::is_same_v<T, float>)
    if (attends_in_bfloat16(device, arrays))
      return tensor_core_attention_backward(device, arrays, kept, out, out_gradient);
  const ArenaScope scope(device.arena);
  std::int64_t query_tiles = 0, key_tiles = 0;
  AttentionOperands<T> a = operands_of<T>(device, arrays);
  a.tiles = upload_tiles(device, arrays.queries, kRows, query_tiles);
  set_operands(device, arrays, a);
  prepare_backward(device, arrays, kept, a);
  a.out_gradient = out_gradient.full.data();
  const Shape by_vector{a.heads * a.tokens, a.vectors};
  for (T** const scratch : {&a.key_products, &a.value_products, &a.gradients_by_distance, &a.weights_by_distance})
    *scratch = device.arena.tensor<T>(by_vector).data();
  const PositionArrays<T>& positions = arrays.positions;

  launch(device, tile_shape(a, query_tiles, 1, a.d + 2 * a.vectors), query_gradient_kernel<T>, a);
  if (a.relative_keys) {
    add_relative_gradient(device, a, a.gradients_by_distance, a.query, a.query_stride,
                          positions.relative_keys_gradient);
    add_relative_gradient(device, a, a.weights_by_distance, a.out_gradient, a.width,
                          positions.relative_values_gradient);
  }
  if (positions.bias_gradient) add_bias_gradient(device, a, arrays.queries.sequences(), positions.bias_gradient);
  if (!a.key_gradient && !a.value_gradient) return;
  a.tiles = upload_tiles(device, arrays.keys, kRows, key_tiles);
  launch(device, tile_shape(a, key_tiles, 2, 2 * a.d), key_gradient_kernel<T>, a);
}

#define HEED_INSTANTIATE(T)                                                                      \
  template T* attention_kept(CudaContext&, const AttentionArrays<T>&, bool);                     \
  template void attention_forward(CudaContext&, const AttentionArrays<T>&, T*, MaybeRounded<T>); \
  template void attention_backward(CudaContext&, const AttentionArrays<T>&, const T*, MaybeRounded<T>, MaybeRounded<T>);
HEED_INSTANTIATE(float)
HEED_INSTANTIATE(double)
#undef HEED_INSTANTIATE

}  // namespace heed
