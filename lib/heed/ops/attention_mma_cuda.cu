// Attention by the tensor cores of a GPU, in bfloat16 with sums in float32 (Dao 2023, "FlashAttention-2").
//
// A block of threads computes a tile of 64 queries of one head, and walks over the keys, 32 at a time; each of its four
// warps has 16 of the queries. The logits of a step stay in the registers of the tensor cores (see
// tensor/cuda_mma.h), where the softmax turns them into the left operand of the product with the values. The backward
// pass computes the logits again, first for tiles of queries and then for tiles of keys.
//
// Operands are bfloat16 numbers. In most trainings the op that computed them has stored them so; others are rounded
// before. Rows are copied to shared memory as words of two numbers. Where a product sums over rows instead of columns,
// the words are transposed on the way to the registers.
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

using Parts = float[kParts][4];  // of a matrix [16, kStep] in the registers of a warp

using Operands = AttentionOperands<float, Bfloat16>;
using Tile = AttentionTile<float, Bfloat16>;

/// Copies `all` rows of d columns to shared memory, as words of two columns. Rows from `count` on, and columns from d
/// on, are zeros.
template <int D>
__device__ void copy_rows(const Bfloat16* rows, std::int64_t stride, std::int64_t count, std::int64_t d, int all,
                          std::uint32_t* words) {
  const int thread = static_cast<int>(threadIdx.x);
  const bool in_eights = d % 8 == 0 && stride % 8 == 0 && reinterpret_cast<std::uintptr_t>(rows) % 16 == 0;
  if (in_eights) {
    for (int e = thread; e < all * (D / 8); e += kThreads) {
      const int row = e / (D / 8), column = e % (D / 8) * 8;
      EightNumbers numbers{};
      if (row < count && column < d) numbers = load_eight(rows + row * stride + column);
      store_eight(numbers, words + row * kRowWords<D> + column / 2);
    }
    return;
  }
  for (int e = thread; e < all * (D / 2); e += kThreads) {
    const int row = e / (D / 2), column = e % (D / 2) * 2;
    const auto number = [&](int c) {
      return row < count && c < d ? static_cast<std::uint32_t>(rows[row * stride + c]) : 0U;
    };
    words[row * kRowWords<D> + column / 2] = number(column) | number(column + 1) << 16;
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
  // The rows that this lane names: of a matrix [16, 16] of the tile, and of two matrices [8, 16] of the step.
  const int l = lane_of_warp();
  const std::uint32_t* const of_tile = tile + (lane.first_row + l % 16) * kRowWords<D> + l / 16 * 4;
  const std::uint32_t* const of_step = step + (l % 8 + l / 16 * 8) * kRowWords<D> + l / 8 % 2 * 4;
  for (int k = 0; k < D / 2; k += 8) {
    std::uint32_t a[4];
    load_matrices(a, of_tile + k);
    HEED_UNROLL
    for (int n = 0; n < kParts; n += 2) {
      std::uint32_t b[4];
      load_matrices(b, of_step + n * 8 * kRowWords<D> + k);
      multiply_add(products[n], a, {b[0], b[1]});
      multiply_add(products[n + 1], a, {b[2], b[3]});
    }
  }
}

/// Adds to sums [16, D] the product of a matrix [16, kStep] in registers and of the rows of a step.
template <int D>
__device__ void add_step_product(const Parts& matrix, const std::uint32_t* step, float (&sums)[D / 8][4]) {
  // The row that this lane names: of two matrices [16, 8] of the step.
  const int l = lane_of_warp();
  const std::uint32_t* const of_step = step + l % 16 * kRowWords<D> + l / 16 * 4;
  HEED_UNROLL
  for (int k = 0; k < kParts; k += 2) {
    const std::uint32_t a[4] = {pack_bfloat16(matrix[k][0], matrix[k][1]), pack_bfloat16(matrix[k][2], matrix[k][3]),
                                pack_bfloat16(matrix[k + 1][0], matrix[k + 1][1]),
                                pack_bfloat16(matrix[k + 1][2], matrix[k + 1][3])};
    HEED_UNROLL
    for (int n = 0; n < D / 8; n += 2) {
      std::uint32_t b[4];
      load_transposed(b, of_step + k * 8 * kRowWords<D> + n * 4);
      multiply_add(sums[n], a, {b[0], b[1]});
      multiply_add(sums[n + 1], a, {b[2], b[3]});
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

/// Stores `sums` in rows of a gradient: from row `first` of the batch on, in the columns of a head.
template <int D>
__device__ void store_gradient(const float (&sums)[D / 8][4], const Lane& lane, std::int64_t rows, const Operands& a,
                               const GradientPlace<float>& gradient, std::int64_t first, std::int32_t head) {
  for_each_sum<D>(sums, lane, rows, a.d,
                  [&](int row, int column, int, float sum) { gradient.store(first + row, head * a.d + column, sum); });
}

template <int D>
__global__ void __launch_bounds__(kThreads) forward_kernel(Operands a, float* out, Bfloat16* out_rounded) {
  const Tile tile(a);
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
    copy_rows<D>(tile.value + begin * a.value_stride, a.value_stride, count, a.d, kStep, values);
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
    add_step_product<D>(p, values, sums);
  }
  for (float& sum : total) sum = row_sum(sum);
  const std::int64_t first = (tile.place.query_begin + tile.begin) * a.width + tile.head * a.d;
  for_each_sum<D>(sums, lane, rows, a.d, [&](int row, int column, int e, float sum) {
    const float element = total[e / 2] > 0 ? sum / total[e / 2] : 0;
    if (out_rounded)
      out_rounded[first + row * a.width + column] = to_bfloat16(element);
    else
      out[first + row * a.width + column] = element;
  });
  if (!a.normalisers || lane.t != 0) return;
  for (int half = 0; half < 2; ++half)
    if (const int row = lane.row(2 * half); row < rows)
      a.normalisers[tile.softmax_at + tile.begin + row] = largest[half] + std::log(total[half]);
}

/// Computes the gradients of a tile of queries, and a.row_sums. The row sum of a query is the sum of P G over the keys,
/// which equals the dot product of the query's row of `out` and the gradient of that row, and is computed as this dot
/// product. The gradient is rounded to bfloat16 as in G. Without dropout, G minus the row sum is therefore exact for a
/// query that has one key.
template <int D>
__global__ void __launch_bounds__(kThreads)
    query_gradient_kernel(Operands a, const float* out, const Bfloat16* out_rounded) {
  const Tile tile(a);
  std::uint32_t *const queries = shared_memory<std::uint32_t>(), *const arrived = queries + kRows * kRowWords<D>,
                       *const keys = arrived + kRows * kRowWords<D>, *const values = keys + kStep * kRowWords<D>;
  const Lane lane;
  const float scale = scale_of(a), never = -INFINITY;
  const std::int64_t rows = std::int64_t{tile.place.queries} - tile.begin;
  const Bfloat16* const gradient_rows = tile.out_gradient + tile.begin * a.width;
  const std::int64_t out_at = (tile.place.query_begin + tile.begin) * a.width + tile.head * a.d;
  copy_rows<D>(tile.query + tile.begin * a.query_stride, a.query_stride, rows, a.d, kRows, queries);
  copy_rows<D>(gradient_rows, a.width, rows, a.d, kRows, arrived);
  float normaliser[2] = {}, row_sums[2] = {};
  for (int half = 0; half < 2; ++half) {
    const std::int64_t row = lane.row(2 * half);
    if (row < rows) {
      normaliser[half] = a.normalisers[tile.softmax_at + tile.begin + row];
      for (std::int64_t c = lane.t; c < a.d; c += 4) {
        const std::int64_t i = row * a.width + c;
        row_sums[half] +=
            (out_rounded ? from_bfloat16(out_rounded[out_at + i]) : out[out_at + i]) * from_bfloat16(gradient_rows[i]);
      }
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
    add_step_product<D>(p, keys, sums);
  }
  store_gradient<D>(sums, lane, rows, a, a.query_gradient, tile.place.query_begin + tile.begin, tile.head);
}

/// Computes the gradients of a tile of keys and values.
template <int D>
__global__ void __launch_bounds__(kThreads) key_gradient_kernel(Operands a) {
  const Tile tile(a);
  std::uint32_t *const keys = shared_memory<std::uint32_t>(), *const values = keys + kRows * kRowWords<D>,
                       *const queries = values + kRows * kRowWords<D>, *const arrived = queries + kStep * kRowWords<D>;
  const Lane lane;
  const float scale = scale_of(a), never = -INFINITY;
  const std::int64_t rows = std::int64_t{tile.place.keys} - tile.begin;
  copy_rows<D>(tile.key + tile.begin * a.key_stride, a.key_stride, rows, a.d, kRows, keys);
  copy_rows<D>(tile.value + tile.begin * a.value_stride, a.value_stride, rows, a.d, kRows, values);
  float key_sums[D / 8][4] = {}, value_sums[D / 8][4] = {};
  for (std::int64_t begin = a.causal ? tile.begin : 0; begin < tile.place.queries; begin += kStep) {
    __syncthreads();
    const std::int64_t count = tile.place.queries - begin;
    copy_rows<D>(tile.query + begin * a.query_stride, a.query_stride, count, a.d, kStep, queries);
    copy_rows<D>(tile.out_gradient + begin * a.width, a.width, count, a.d, kStep, arrived);
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
    add_step_product<D>(ds, queries, key_sums);
    add_step_product<D>(p, arrived, value_sums);
  }
  const std::int64_t first = tile.place.key_begin + tile.begin;
  store_gradient<D>(key_sums, lane, rows, a, a.key_gradient, first, tile.head);
  store_gradient<D>(value_sums, lane, rows, a, a.value_gradient, first, tile.head);
}

/// Calls function(width), where width.value is the smallest of the widths 32, 64 and 128 that is not below d.
template <class Function>
void with_width(std::int64_t d, const Function& function) {
  if (d <= 32) return function(std::integral_constant<int, 32>());
  if (d <= 64) return function(std::integral_constant<int, 64>());
  function(std::integral_constant<int, 128>());
}

/// Returns the shape of a launch whose shared memory holds `rows` rows.
template <int D>
LaunchShape shape_of(const Operands& a, std::int64_t tiles, int rows) {
  const int words = rows * kRowWords<D>;
  return {static_cast<unsigned>(tiles * a.heads), kThreads, static_cast<std::size_t>(words) * sizeof(std::uint32_t)};
}

/// Returns an operand [rows, columns] as bfloat16: `stored`, or where that is null, a rounded copy of `full` without
/// gaps. `stride` is that of the operand, and then that of the result.
const Bfloat16* in_bfloat16(CudaContext& device, const float* full, const Bfloat16* stored, std::int64_t rows,
                            std::int64_t columns, std::int64_t& stride) {
  if (stored) return stored;
  Bfloat16* const copy = device.arena.tensor<Bfloat16>({rows, columns}).data();
  round_matrix(device, full, stride, rows, columns, copy);
  stride = columns;
  return copy;
}

/// Returns the operands of the kernels, with tiles of queries. `tiles` receives their number.
Operands rounded_operands(CudaContext& device, const AttentionArrays<float>& arrays, std::int64_t& tiles) {
  Operands a = operands_of<Bfloat16>(device, arrays, kRows, tiles);
  a.query_stride = arrays.query_stride;
  a.key_stride = arrays.key_stride;
  a.value_stride = arrays.value_stride;
  const std::int64_t queries = arrays.queries.tokens(), keys = arrays.keys.tokens(), width = arrays.width;
  a.query = in_bfloat16(device, arrays.query, arrays.rounded.query, queries, width, a.query_stride);
  a.key = in_bfloat16(device, arrays.key, arrays.rounded.key, keys, width, a.key_stride);
  a.value = in_bfloat16(device, arrays.value, arrays.rounded.value, keys, width, a.value_stride);
  return a;
}

}  // namespace

void tensor_core_attention_forward(CudaContext& device, const AttentionArrays<float>& arrays, float* kept,
                                   MaybeRounded<float> out) {
  const ArenaScope scope(device.arena);
  std::int64_t tiles = 0;
  Operands a = rounded_operands(device, arrays, tiles);
  a.normalisers = kept;
  with_width(a.d, [&](auto width) {
    constexpr int kD = decltype(width)::value;
    launch(device, shape_of<kD>(a, tiles, kRows + 2 * kStep), forward_kernel<kD>, a, out.full.data(),
           out.rounded.data());
  });
}

void tensor_core_attention_backward(CudaContext& device, const AttentionArrays<float>& arrays, const float* kept,
                                    MaybeRounded<float> out, MaybeRounded<float> out_gradient) {
  const ArenaScope scope(device.arena);
  std::int64_t query_tiles = 0, key_tiles = 0, stride = arrays.width;
  Operands a = rounded_operands(device, arrays, query_tiles);
  prepare_backward(device, arrays, kept, a);
  a.out_gradient =
      in_bfloat16(device, out_gradient.full.data(), out_gradient.rounded.data(), a.tokens, a.width, stride);
  with_width(a.d, [&](auto width) {
    constexpr int kD = decltype(width)::value;
    launch(device, shape_of<kD>(a, query_tiles, 2 * kRows + 2 * kStep), query_gradient_kernel<kD>, a, out.full.data(),
           out.rounded.data());
  });
  if (arrays.positions.bias_gradient)
    add_bias_gradient(device, a, arrays.queries.sequences(), arrays.positions.bias_gradient);
  if (!a.key_gradient && !a.value_gradient) return;
  a.tiles = upload_tiles(device, arrays.keys, kRows, key_tiles);
  with_width(a.d, [&](auto width) {
    constexpr int kD = decltype(width)::value;
    launch(device, shape_of<kD>(a, key_tiles, 2 * kRows + 2 * kStep), key_gradient_kernel<kD>, a);
  });
}

}  // namespace heed
