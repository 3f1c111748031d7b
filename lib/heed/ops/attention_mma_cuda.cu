// Attention by the tensor cores of a GPU, in bfloat16 with sums in float32 (Dao 2023, "FlashAttention-2").
//
// A block of threads computes a tile of 64 queries of one head, and walks over the keys, 32 at a time; each of its four
// warps has 16 of the queries. The logits of a step stay in the registers of the tensor cores (see
// tensor/cuda_mma.h), where the softmax turns them into the left operand of the product with the values. The backward
// pass computes the logits again, first for tiles of queries and then for tiles of keys.
//
// Operands are rounded to bfloat16 when they are copied to shared memory, as words of two numbers: two neighbouring
// columns of a row where the product sums over columns, or two neighbouring rows of a column where it sums over rows.
#include "heed/ops/attention_cuda-inl.h"
#include "heed/tensor/cuda_mma.h"

namespace heed {
namespace {

constexpr int kWarps = 4, kRows = 16 * kWarps;  // of a tile
constexpr int kStep = 32;                       // the keys, or queries, of a step
constexpr unsigned kThreads = 32 * kWarps;
constexpr int kParts = kStep / 8;  // a product with 8 rows of the step has a part of the registers
/// The words of a row in shared memory: four more than it has, so that the rows lie in different banks.
template <int D>
constexpr int kRowWords = D / 2 + 4;
constexpr int kColumnWords = kStep / 2 + 4;

using Parts = float[kParts][4];  // of a matrix [16, kStep] in the registers of a warp

/// Copies `all` rows of d columns to shared memory, as words of two columns. Rows from `count` on, and columns from d
/// on, are zeros.
template <int D>
__device__ void copy_rows(const float* rows, std::int64_t stride, std::int64_t count, std::int64_t d, int all,
                          std::uint32_t* words) {
  for (int e = static_cast<int>(threadIdx.x); e < all * (D / 2); e += kThreads) {
    const int row = e / (D / 2), column = e % (D / 2) * 2;
    const float* const from = rows + row * stride + column;
    const float first = row < count && column < d ? from[0] : 0, second = row < count && column + 1 < d ? from[1] : 0;
    words[row * kRowWords<D> + column / 2] = pack_bfloat16(first, second);
  }
}

/// Copies kStep rows of d columns to shared memory, as words of two rows: column by column.
template <int D>
__device__ void copy_columns(const float* rows, std::int64_t stride, std::int64_t count, std::int64_t d,
                             std::uint32_t* words) {
  for (int e = static_cast<int>(threadIdx.x); e < kStep / 2 * D; e += kThreads) {
    const int row = e / D * 2, column = e % D;
    const float* const from = rows + row * stride + column;
    const float first = row < count && column < d ? from[0] : 0,
                second = row + 1 < count && column < d ? from[stride] : 0;
    words[column * kColumnWords + row / 2] = pack_bfloat16(first, second);
  }
}

/// The place of a thread in the matrices of a warp (see tensor/cuda_mma.h).
struct Lane {
  int g = lane_of_warp() / 4, t = lane_of_warp() % 4;
  int first_row = static_cast<int>(threadIdx.x) / 32 * 16;  // of the warp in its tile

  /// Returns the row of element e in the tile, and its column among the columns of part n.
  __device__ int row(int e) const { return first_row + g + e / 2 * 8; }
  __device__ int column(int n, int e) const { return n * 8 + 2 * t + e % 2; }
};

/// Computes the products of the warp's rows of a tile and of the rows of a step, both with D columns.
template <int D>
__device__ void row_products(const std::uint32_t* tile, const std::uint32_t* step, const Lane& lane, Parts& products) {
  for (auto& part : products)
    for (float& element : part) element = 0;
  for (int k = 0; k < D / 2; k += 8) {
    const std::uint32_t* const row = tile + (lane.first_row + lane.g) * kRowWords<D> + k + lane.t;
    const std::uint32_t a[4] = {row[0], row[8 * kRowWords<D>], row[4], row[8 * kRowWords<D> + 4]};
    HEED_UNROLL
    for (int n = 0; n < kParts; ++n) {
      const std::uint32_t* const column = step + (n * 8 + lane.g) * kRowWords<D> + k + lane.t;
      const std::uint32_t b[2] = {column[0], column[4]};
      multiply_add(products[n], a, b);
    }
  }
}

/// Adds to sums [16, D] the product of a matrix [16, kStep] in registers and of the rows of a step, column by column.
template <int D>
__device__ void add_step_product(const Parts& matrix, const std::uint32_t* columns, const Lane& lane,
                                 float (&sums)[D / 8][4]) {
  HEED_UNROLL
  for (int k = 0; k < kParts; k += 2) {
    const std::uint32_t a[4] = {pack_bfloat16(matrix[k][0], matrix[k][1]), pack_bfloat16(matrix[k][2], matrix[k][3]),
                                pack_bfloat16(matrix[k + 1][0], matrix[k + 1][1]),
                                pack_bfloat16(matrix[k + 1][2], matrix[k + 1][3])};
    HEED_UNROLL
    for (int n = 0; n < D / 8; ++n) {
      const std::uint32_t* const column = columns + (n * 8 + lane.g) * kColumnWords + k * 4 + lane.t;
      const std::uint32_t b[2] = {column[0], column[4]};
      multiply_add(sums[n], a, b);
    }
  }
}

/// Returns the sum, or the largest, of the values of the four lanes that hold elements of the same row.
__device__ float row_sum(float value) {
  value += __shfl_xor_sync(0xFFFFFFFF, value, 1);
  return value + __shfl_xor_sync(0xFFFFFFFF, value, 2);
}
__device__ float row_max(float value) {
  value = fmaxf(value, __shfl_xor_sync(0xFFFFFFFF, value, 1));
  return fmaxf(value, __shfl_xor_sync(0xFFFFFFFF, value, 2));
}

/// Calls store(row, column, value) for the elements of `sums` [16, D] of this thread that lie within d columns and
/// `rows` rows of the tile.
template <int D, class Store>
__device__ void for_each_sum(const float (&sums)[D / 8][4], const Lane& lane, std::int64_t rows, std::int64_t d,
                             const Store& store) {
  HEED_UNROLL
  for (int n = 0; n < D / 8; ++n) HEED_UNROLL
  for (int e = 0; e < 4; ++e)
    if (lane.row(e) < rows && lane.column(n, e) < d) store(lane.row(e), lane.column(n, e), e, sums[n][e]);
}

/// Writes or adds `sums` to the rows of a gradient, unless it is null.
template <int D>
__device__ void store_gradient(const float (&sums)[D / 8][4], const Lane& lane, std::int64_t rows, std::int64_t d,
                               float* gradient, std::int64_t stride, bool empty) {
  if (!gradient) return;
  for_each_sum<D>(sums, lane, rows, d, [&](int row, int column, int, float sum) {
    float& target = gradient[row * stride + column];
    target = empty ? sum : target + sum;
  });
}

template <int D>
__global__ void __launch_bounds__(kThreads) forward_kernel(AttentionOperands<float> a, float* out) {
  const AttentionTile<float> tile(a);
  std::uint32_t *const queries = shared_memory<std::uint32_t>(), *const keys = queries + kRows * kRowWords<D>,
                       *const values = keys + kStep * kRowWords<D>;
  const Lane lane;
  const float scale = scale_of(a), never = -INFINITY;
  const std::int64_t rows = std::int64_t{tile.place.queries} - tile.begin;
  copy_rows<D>(tile.query + tile.begin * a.query_stride, a.query_stride, rows, a.d, kRows, queries);
  float sums[D / 8][4] = {}, largest[2] = {never, never}, total[2] = {};
  const std::int64_t seen = keys_of_tile(a, tile, kRows);
  for (std::int64_t begin = 0; begin < seen; begin += kStep) {
    __syncthreads();
    const std::int64_t count = tile.place.keys - begin;
    copy_rows<D>(tile.key + begin * a.key_stride, a.key_stride, count, a.d, kStep, keys);
    copy_columns<D>(tile.value + begin * a.value_stride, a.value_stride, count, a.d, values);
    __syncthreads();
    Parts p;
    row_products<D>(queries, keys, lane, p);
    float step_largest[2] = {never, never};
    HEED_UNROLL
    for (int n = 0; n < kParts; ++n) HEED_UNROLL
    for (int e = 0; e < 4; ++e) {
      p[n][e] = logit<float>(a, tile, tile.begin + lane.row(e), begin + lane.column(n, e), p[n][e], scale, nullptr);
      step_largest[e / 2] = fmaxf(step_largest[e / 2], p[n][e]);
    }
    float factor[2];
    for (int half = 0; half < 2; ++half) {
      const float now = fmaxf(largest[half], row_max(step_largest[half]));
      factor[half] = largest[half] > never ? std::exp(largest[half] - now) : 0;
      largest[half] = now;
      total[half] *= factor[half];
    }
    HEED_UNROLL
    for (auto& part : sums) HEED_UNROLL
    for (int e = 0; e < 4; ++e) part[e] *= factor[e / 2];
    HEED_UNROLL
    for (int n = 0; n < kParts; ++n) HEED_UNROLL
    for (int e = 0; e < 4; ++e) {
      p[n][e] = p[n][e] > never ? std::exp(p[n][e] - largest[e / 2]) : 0;
      total[e / 2] += p[n][e];
      const std::int64_t i = tile.begin + lane.row(e), j = begin + lane.column(n, e);
      if (p[n][e] > 0) p[n][e] = drop(p[n][e], a.mask, tile.weights_at + i * tile.place.keys + j);
    }
    add_step_product<D>(p, values, lane, sums);
  }
  for (float& sum : total) sum = row_sum(sum);
  float* const to = out + (tile.place.query_begin + tile.begin) * a.width + tile.head * a.d;
  for_each_sum<D>(sums, lane, rows, a.d, [&](int row, int column, int e, float sum) {
    to[row * a.width + column] = total[e / 2] > 0 ? sum / total[e / 2] : 0;
  });
  if (!a.normalisers || lane.t != 0) return;
  for (int half = 0; half < 2; ++half)
    if (const int row = lane.row(2 * half); row < rows)
      a.normalisers[tile.softmax_at + tile.begin + row] = largest[half] + std::log(total[half]);
}

/// Computes the gradients of a tile of queries, and a.row_sums: the sums of P G, which are the products of the rows of
/// `out` and of their gradients. These are rounded as in G, so that G minus its sum is exact where a query has one key.
template <int D>
__global__ void __launch_bounds__(kThreads) query_gradient_kernel(AttentionOperands<float> a, const float* out) {
  const AttentionTile<float> tile(a);
  std::uint32_t *const queries = shared_memory<std::uint32_t>(), *const arrived = queries + kRows * kRowWords<D>,
                       *const keys = arrived + kRows * kRowWords<D>, *const values = keys + kStep * kRowWords<D>,
                       *const key_columns = values + kStep * kRowWords<D>;
  const Lane lane;
  const float scale = scale_of(a), never = -INFINITY;
  const std::int64_t rows = std::int64_t{tile.place.queries} - tile.begin;
  const float* const gradient_rows = tile.out_gradient + tile.begin * a.width;
  const float* const out_rows = out + (tile.out_gradient - a.out_gradient) + tile.begin * a.width;
  copy_rows<D>(tile.query + tile.begin * a.query_stride, a.query_stride, rows, a.d, kRows, queries);
  copy_rows<D>(gradient_rows, a.width, rows, a.d, kRows, arrived);
  float normaliser[2] = {}, row_sums[2] = {};
  for (int half = 0; half < 2; ++half) {
    const std::int64_t row = lane.row(2 * half);
    if (row < rows) {
      normaliser[half] = a.normalisers[tile.softmax_at + tile.begin + row];
      for (std::int64_t c = lane.t; c < a.d; c += 4)
        row_sums[half] += out_rows[row * a.width + c] * round_to_bfloat16(gradient_rows[row * a.width + c]);
    }
    row_sums[half] = row_sum(row_sums[half]);
    if (row < rows && lane.t == 0) a.row_sums[tile.softmax_at + tile.begin + row] = row_sums[half];
  }
  float sums[D / 8][4] = {};
  const std::int64_t seen = keys_of_tile(a, tile, kRows);
  for (std::int64_t begin = 0; begin < seen; begin += kStep) {
    __syncthreads();
    const std::int64_t count = tile.place.keys - begin;
    copy_rows<D>(tile.key + begin * a.key_stride, a.key_stride, count, a.d, kStep, keys);
    copy_rows<D>(tile.value + begin * a.value_stride, a.value_stride, count, a.d, kStep, values);
    copy_columns<D>(tile.key + begin * a.key_stride, a.key_stride, count, a.d, key_columns);
    __syncthreads();
    Parts p, g;
    row_products<D>(queries, keys, lane, p);
    row_products<D>(arrived, values, lane, g);
    HEED_UNROLL
    for (int n = 0; n < kParts; ++n) HEED_UNROLL
    for (int e = 0; e < 4; ++e) {
      const std::int64_t i = tile.begin + lane.row(e), j = begin + lane.column(n, e);
      const float s = logit<float>(a, tile, i, j, p[n][e], scale, nullptr);
      float ds = 0;
      if (s > never)
        ds = std::exp(s - normaliser[e / 2]) *
             (weight_gradient<float>(a, tile, i, j, g[n][e], nullptr) - row_sums[e / 2]);
      if (a.logit_gradients && i < tile.place.queries && j < tile.place.keys)
        a.logit_gradients[tile.weights_at + i * tile.place.keys + j] = ds;
      p[n][e] = scale * ds;
    }
    add_step_product<D>(p, key_columns, lane, sums);
  }
  if (a.query_gradient)
    store_gradient<D>(sums, lane, rows, a.d,
                      a.query_gradient + (tile.place.query_begin + tile.begin) * a.query_stride + tile.head * a.d,
                      a.query_stride, a.query_gradient_empty);
}

/// Computes the gradients of a tile of keys and values.
template <int D>
__global__ void __launch_bounds__(kThreads) key_gradient_kernel(AttentionOperands<float> a) {
  const AttentionTile<float> tile(a);
  std::uint32_t *const keys = shared_memory<std::uint32_t>(), *const values = keys + kRows * kRowWords<D>,
                       *const queries = values + kRows * kRowWords<D>, *const arrived = queries + kStep * kRowWords<D>,
                       *const query_columns = arrived + kStep * kRowWords<D>,
                       *const arrived_columns = query_columns + D * kColumnWords;
  const Lane lane;
  const float scale = scale_of(a), never = -INFINITY;
  const std::int64_t rows = std::int64_t{tile.place.keys} - tile.begin;
  copy_rows<D>(tile.key + tile.begin * a.key_stride, a.key_stride, rows, a.d, kRows, keys);
  copy_rows<D>(tile.value + tile.begin * a.value_stride, a.value_stride, rows, a.d, kRows, values);
  float key_sums[D / 8][4] = {}, value_sums[D / 8][4] = {};
  for (std::int64_t begin = a.causal ? tile.begin : 0; begin < tile.place.queries; begin += kStep) {
    __syncthreads();
    const std::int64_t count = tile.place.queries - begin;
    const float *const query_rows = tile.query + begin * a.query_stride, *const gradient_rows =
                                                                             tile.out_gradient + begin * a.width;
    copy_rows<D>(query_rows, a.query_stride, count, a.d, kStep, queries);
    copy_rows<D>(gradient_rows, a.width, count, a.d, kStep, arrived);
    copy_columns<D>(query_rows, a.query_stride, count, a.d, query_columns);
    copy_columns<D>(gradient_rows, a.width, count, a.d, arrived_columns);
    __syncthreads();
    Parts p, ds;
    row_products<D>(keys, queries, lane, p);
    row_products<D>(values, arrived, lane, ds);
    HEED_UNROLL
    for (int n = 0; n < kParts; ++n) HEED_UNROLL
    for (int e = 0; e < 4; ++e) {
      const std::int64_t j = tile.begin + lane.row(e), i = begin + lane.column(n, e), softmax = tile.softmax_at + i;
      const float s = logit<float>(a, tile, i, j, p[n][e], scale, nullptr);
      p[n][e] = 0;
      if (s > never) {
        p[n][e] = std::exp(s - a.normalisers[softmax]);
        ds[n][e] = scale * p[n][e] * (weight_gradient<float>(a, tile, i, j, ds[n][e], nullptr) - a.row_sums[softmax]);
        p[n][e] = drop(p[n][e], a.mask, tile.weights_at + i * tile.place.keys + j);
      } else {
        ds[n][e] = 0;
      }
    }
    add_step_product<D>(ds, query_columns, lane, key_sums);
    add_step_product<D>(p, arrived_columns, lane, value_sums);
  }
  const std::int64_t first = tile.place.key_begin + tile.begin, column = tile.head * a.d;
  if (a.key_gradient)
    store_gradient<D>(key_sums, lane, rows, a.d, a.key_gradient + first * a.key_stride + column, a.key_stride,
                      a.key_gradient_empty);
  if (a.value_gradient)
    store_gradient<D>(value_sums, lane, rows, a.d, a.value_gradient + first * a.value_stride + column, a.value_stride,
                      a.value_gradient_empty);
}

/// Calls function(width), where width.value is the smallest of the widths 32, 64 and 128 that is not below d.
template <class Function>
void with_width(std::int64_t d, const Function& function) {
  if (d <= 32) return function(std::integral_constant<int, 32>());
  if (d <= 64) return function(std::integral_constant<int, 64>());
  function(std::integral_constant<int, 128>());
}

/// Returns the shape of a launch whose shared memory holds `rows` rows and `matrices` steps, column by column.
template <int D>
LaunchShape shape_of(const AttentionOperands<float>& a, std::int64_t tiles, int rows, int matrices) {
  const int words = rows * kRowWords<D> + matrices * D * kColumnWords;
  return {static_cast<unsigned>(tiles * a.heads), kThreads, static_cast<std::size_t>(words) * sizeof(std::uint32_t)};
}

}  // namespace

void tensor_core_attention_forward(CudaContext& device, const AttentionArrays<float>& arrays, float* kept, float* out) {
  const ArenaScope scope(device.arena);
  std::int64_t tiles = 0;
  AttentionOperands<float> a = operands_of(device, arrays, kRows, tiles);
  a.normalisers = kept;
  with_width(a.d, [&](auto width) {
    constexpr int kD = decltype(width)::value;
    launch(device, shape_of<kD>(a, tiles, kRows + kStep, 1), forward_kernel<kD>, a, out);
  });
}

void tensor_core_attention_backward(CudaContext& device, const AttentionArrays<float>& arrays, const float* kept,
                                    const float* out, const float* out_gradient) {
  const ArenaScope scope(device.arena);
  std::int64_t query_tiles = 0, key_tiles = 0;
  AttentionOperands<float> a = backward_operands(device, arrays, kept, out_gradient, kRows, query_tiles);
  with_width(a.d, [&](auto width) {
    constexpr int kD = decltype(width)::value;
    launch(device, shape_of<kD>(a, query_tiles, 2 * kRows + 2 * kStep, 1), query_gradient_kernel<kD>, a, out);
  });
  if (arrays.positions.bias_gradient)
    add_bias_gradient(device, a, arrays.queries.sequences(), arrays.positions.bias_gradient);
  if (!a.key_gradient && !a.value_gradient) return;
  a.tiles = upload_tiles(device, arrays.keys, kRows, key_tiles);
  with_width(a.d, [&](auto width) {
    constexpr int kD = decltype(width)::value;
    launch(device, shape_of<kD>(a, key_tiles, 2 * kRows + 2 * kStep, 2), key_gradient_kernel<kD>, a);
  });
}

}  // namespace heed
