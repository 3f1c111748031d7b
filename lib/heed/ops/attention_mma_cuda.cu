// Attention by the tensor cores of a GPU, in bfloat16 with sums in float32 (Dao 2023, "FlashAttention-2").
//
// A block of threads computes a tile of queries of one head, and walks over the keys, 32 at a time; each of its warps
// has 16 of the queries. The logits of a step stay in the registers of the tensor cores (see tensor/cuda_mma.h), where
// the softmax turns them into the left operand of the product with the values. While a step is computed, the rows of
// the next one are on their way to shared memory.
//
// The backward pass computes the logits again. Where all queries and keys of a sequence fit into a tile, as they do in
// most sentences, one block computes all gradients of a head. Of longer sequences, one kernel computes the gradients
// of tiles of queries, and another one those of tiles of keys: sums of parts that several blocks have computed would
// depend on the order in which the blocks end.
//
// Tiles of short sequences have 32 rows and two warps, others 64 rows and four, so that few threads have no row.
// (Kernels of Kind::general have the larger tiles alone.)
//
// Operands are bfloat16 numbers. In most trainings the op that computed them has stored them so; others are rounded
// before. Rows are copied to shared memory as words of two numbers. Where a product sums over rows instead of columns,
// the words are transposed on the way to the registers.
#include "heed/ops/attention_cuda-inl.h"
#include "heed/tensor/cuda_mma.h"
#include "heed/tensor/cuda_packs.h"

namespace heed {
namespace {

constexpr int kStep = 32;  // the keys, or queries, of a step
/// The warps of the tiles of short and of long sequences; each warp has 16 rows.
constexpr int kShortWarps = 2, kLongWarps = 4;
/// The words of a row of D numbers in shared memory: four more than it has, so that the rows lie in different banks.
template <int D>
constexpr int kRowWords = D / 2 + 4;

/// A matrix [16, 8 N] in the registers of a warp.
template <int N>
using Parts = float[N][4];

using Operands = AttentionOperands<float, Bfloat16>;
using Tile = AttentionTile<float, Bfloat16>;

/// Each kernel is compiled twice: for what most attentions are, and for all. Most of them have nothing besides their
/// operands: no bias, no dropout, and no gradients of logits or attention weights. All their operands and results are
/// stored as bfloat16, and consist of packs of eight numbers. The code for everything else takes most instructions of a
/// kernel.
enum class Kind { plain, general };

/// Returns the operands of a kernel. With Kind::plain, the compiler knows what they do not have.
template <Kind K>
__device__ __forceinline__ Operands known(Operands a) {
  if constexpr (K == Kind::plain) {
    a.mask = {};
    a.bias = a.weights_gradient = nullptr;
    a.logit_gradients = nullptr;
  }
  return a;
}

/// These kernels know no relative vectors (see logit() and weight_gradient()).
constexpr const float* kNoProducts = nullptr;

/// Begins to copy `Rows` rows of d columns to shared memory, as words of two columns. Rows from `count` on, and columns
/// from d on, are zeros. See begin_copy() for when the rows are there.
template <Kind K, int D, int Warps, int Rows>
__device__ __forceinline__ void fetch_rows(const Bfloat16* rows, std::int64_t stride, int count, int d,
                                           std::uint32_t* words) {
  constexpr int kThreads = 32 * Warps, kPerRow = D / 8, kAtOnce = kThreads / kPerRow;
  static_assert(Rows % kAtOnce == 0);
  const int thread = static_cast<int>(threadIdx.x);
  if (K == Kind::plain || (d % 8 == 0 && stride % 8 == 0 && reinterpret_cast<std::uintptr_t>(rows) % 16 == 0)) {
    const int first = thread / kPerRow, column = thread % kPerRow * 8, existing = column < d ? count : 0;
    const Bfloat16* from = rows + first * stride + column;
    std::uint32_t* to = words + first * kRowWords<D> + column / 2;
    HEED_UNROLL
    for (int row = 0; row < Rows; row += kAtOnce) {
      const bool exists = first + row < existing;
      begin_copy(to + row * kRowWords<D>, exists ? from : rows, exists);
      from += kAtOnce * stride;
    }
    return;
  }
  if constexpr (K == Kind::general)
    for (int e = thread; e < Rows * (D / 2); e += kThreads) {
      const int row = e / (D / 2), column = e % (D / 2) * 2;
      const auto number = [&](int c) {
        return row < count && c < d ? static_cast<std::uint32_t>(rows[row * stride + c]) : 0U;
      };
      words[row * kRowWords<D> + column / 2] = number(column) | number(column + 1) << 16;
    }
}

/// Begins to copy the keys and values of the step that begins with key number `begin` (see fetch_rows()).
template <Kind K, int D, int Warps>
__device__ __forceinline__ void fetch_keys(const Operands& a, const Tile& tile, int begin, std::uint32_t* keys,
                                           std::uint32_t* values) {
  const int count = tile.place.keys - begin, d = static_cast<int>(a.d);
  fetch_rows<K, D, Warps, kStep>(tile.key + begin * a.key_stride, a.key_stride, count, d, keys);
  fetch_rows<K, D, Warps, kStep>(tile.value + begin * a.value_stride, a.value_stride, count, d, values);
}

/// Waits until the rows that the threads of this block have fetched are there for all of them.
__device__ __forceinline__ void wait_for_rows() {
  wait_for_copies();
  __syncthreads();
}

/// Returns the number of the attention weight of query i and key j.
__device__ __forceinline__ std::int64_t weight_at(const Tile& tile, int i, int j) {
  return tile.weights_at + std::int64_t{i} * tile.place.keys + j;
}

/// Stores the gradient of the logit of query i and key j where another kernel wants it.
__device__ __forceinline__ void store_logit_gradient(const Operands& a, const Tile& tile, int i, int j,
                                                     float gradient) {
  if (a.logit_gradients && i < tile.place.queries && j < tile.place.keys)
    a.logit_gradients[weight_at(tile, i, j)] = gradient;
}

/// The place of a thread in the matrices of a warp (see tensor/cuda_mma.h).
struct Lane {
  int l = lane_of_warp(), g = l / 4, t = l % 4;
  int first_row = static_cast<int>(threadIdx.x) / 32 * 16;  // of the warp in its tile

  /// Returns the row of element e in the tile, and its column among the columns of part n.
  __device__ int row(int e) const { return first_row + g + e / 2 * 8; }
  __device__ int column(int n, int e) const { return n * 8 + 2 * t + e % 2; }
};

/// Computes the products of the warp's rows of a tile and of `count` rows of a step, both with D columns. The products
/// with other rows are 0.
template <int D, int N>
__device__ __forceinline__ void row_products(const std::uint32_t* tile, const std::uint32_t* step, int count,
                                             const Lane& lane, Parts<N>& products) {
  for (auto& part : products)
    for (float& element : part) element = 0;
  // The rows that this lane names: of a matrix [16, 16] of the tile, and of two matrices [8, 16] of the step.
  const int l = lane.l;
  const std::uint32_t* const of_tile = tile + (lane.first_row + l % 16) * kRowWords<D> + l / 16 * 4;
  const std::uint32_t* const of_step = step + (l % 8 + l / 16 * 8) * kRowWords<D> + l / 8 % 2 * 4;
  HEED_UNROLL
  for (int k = 0; k < D / 2; k += 8) {
    std::uint32_t a[4];
    load_matrices(a, of_tile + k);
    HEED_UNROLL
    for (int n = 0; n < N; n += 2) {
      if (n * 8 >= count) continue;
      std::uint32_t b[4];
      load_matrices(b, of_step + n * 8 * kRowWords<D> + k);
      multiply_add(products[n], a, {b[0], b[1]});
      multiply_add(products[n + 1], a, {b[2], b[3]});
    }
  }
}

/// Adds to sums [16, D] the product of a matrix [16, 16] in registers and of 16 rows in shared memory.
template <int D>
__device__ __forceinline__ void add_product(const std::uint32_t (&a)[4], const std::uint32_t* rows, const Lane& lane,
                                            Parts<D / 8>& sums) {
  // The row that this lane names: of two matrices [16, 8].
  const std::uint32_t* const of_rows = rows + lane.l % 16 * kRowWords<D> + lane.l / 16 * 4;
  HEED_UNROLL
  for (int n = 0; n < D / 8; n += 2) {
    std::uint32_t b[4];
    load_transposed(b, of_rows + n * 4);
    multiply_add(sums[n], a, {b[0], b[1]});
    multiply_add(sums[n + 1], a, {b[2], b[3]});
  }
}

/// Adds to sums [16, D] the product of a matrix [16, 8 N] in registers and of the first `count` rows of a step.
template <int D, int N>
__device__ __forceinline__ void add_step_product(const Parts<N>& matrix, const std::uint32_t* step, int count,
                                                 const Lane& lane, Parts<D / 8>& sums) {
  HEED_UNROLL
  for (int k = 0; k < N; k += 2) {
    if (k * 8 >= count) continue;
    add_product<D>(
        {pack_bfloat16(matrix[k][0], matrix[k][1]), pack_bfloat16(matrix[k][2], matrix[k][3]),
         pack_bfloat16(matrix[k + 1][0], matrix[k + 1][1]), pack_bfloat16(matrix[k + 1][2], matrix[k + 1][3])},
        step + k * 8 * kRowWords<D>, lane, sums);
  }
}

/// Returns the sum, or the largest, of the values of the four lanes that hold elements of the same row.
__device__ __forceinline__ float row_sum(float value) {
  value += __shfl_xor_sync(0xFFFFFFFF, value, 1);
  return value + __shfl_xor_sync(0xFFFFFFFF, value, 2);
}
__device__ __forceinline__ float row_max(float value) {
  value = fmaxf(value, __shfl_xor_sync(0xFFFFFFFF, value, 1));
  return fmaxf(value, __shfl_xor_sync(0xFFFFFFFF, value, 2));
}

/// Returns the largest logit of a row, or its normaliser, as exponents subtract it: 0 for a row that attends to no key,
/// so that the exponential of minus infinity, the logit of a key to which a query does not attend, is always 0.
__device__ __forceinline__ float finite_or_zero(float x) {
  return x == -INFINITY ? 0 : x;
}

/// Calls body(n, e) for the elements of a matrix [16, 8 N] that this thread holds.
template <int N, class Body>
__device__ __forceinline__ void for_each_part(const Body& body) {
  HEED_UNROLL
  for (int n = 0; n < N; ++n) HEED_UNROLL
  for (int e = 0; e < 4; ++e) body(n, e);
}

/// Stores a matrix [16, D] in rows of d columns, of which those from `rows` on do not exist: in `rounded`, where that
/// is not null, as bfloat16, and otherwise by full(row, column, number). `rounded` is the address of row 0 of the tile;
/// rows begin `stride` elements apart.
template <Kind K, int D, class Full>
__device__ __forceinline__ void store_rows(const Parts<D / 8>& matrix, const Lane& lane, int rows, int d,
                                           Bfloat16* rounded, std::int64_t stride, const Full& full) {
  const bool in_packs = d % 2 == 0 && stride % 2 == 0 && reinterpret_cast<std::uintptr_t>(rounded) % 4 == 0;
  if (K == Kind::plain || (rounded && in_packs)) {
    HEED_UNROLL
    for (int n = 0; n < D / 8; ++n) HEED_UNROLL
    for (int e = 0; e < 4; e += 2)
      if (lane.row(e) < rows && lane.column(n, e) < d)
        store_pack(round_pack(Pack<float, 2>{{matrix[n][e], matrix[n][e + 1]}}),
                   rounded + lane.row(e) * stride + lane.column(n, e));
    return;
  }
  for_each_part<D / 8>([&](int n, int e) {
    const int row = lane.row(e), column = lane.column(n, e);
    if (row >= rows || column >= d) return;
    if (rounded)
      rounded[row * stride + column] = to_bfloat16(matrix[n][e]);
    else
      full(row, column, matrix[n][e]);
  });
}

/// Stores sums [16, D] in rows of a gradient: from row `first` of the batch on, in the columns of a head.
template <Kind K, int D>
__device__ __forceinline__ void store_gradient(const Parts<D / 8>& sums, const Lane& lane, int rows, const Operands& a,
                                               const GradientPlace<float>& gradient, std::int64_t first,
                                               std::int32_t head) {
  if (!gradient) return;
  const std::int64_t column = head * a.d;
  store_rows<K, D>(sums, lane, rows, static_cast<int>(a.d),
                   gradient.rounded ? gradient.rounded + first * gradient.stride + column : nullptr, gradient.stride,
                   [&](int row, int c, float sum) { gradient.store(first + row, column + c, sum); });
}

template <Kind K, int D, int Warps>
__global__ void __launch_bounds__(32 * Warps) forward_kernel(Operands operands, float* out, Bfloat16* out_rounded) {
  constexpr int kRows = 16 * Warps, kParts = kStep / 8, kStepWords = kStep * kRowWords<D>;
  const Operands a = known<K>(operands);
  const Tile tile(a);
  std::uint32_t *const queries = shared_memory<std::uint32_t>(), *const keys = queries + kRows * kRowWords<D>,
                       *const values = keys + 2 * kStepWords;
  const Lane lane;
  const float scale = scale_of(a), never = -INFINITY;
  const int rows = tile.place.queries - tile.begin, d = static_cast<int>(a.d),
            seen = static_cast<int>(keys_of_tile(a, tile, kRows));
  const auto fetch = [&](int begin, int buffer) {
    fetch_keys<K, D, Warps>(a, tile, begin, keys + buffer * kStepWords, values + buffer * kStepWords);
  };
  fetch_rows<K, D, Warps, kRows>(tile.query + tile.begin * a.query_stride, a.query_stride, rows, d, queries);
  fetch(0, 0);
  wait_for_rows();
  Parts<D / 8> sums = {};
  float largest[2] = {never, never}, total[2] = {};
  const bool has_rows = lane.first_row < rows;
  for (int begin = 0, buffer = 0; begin < seen; begin += kStep, buffer ^= 1) {
    if (begin + kStep < seen) fetch(begin + kStep, buffer ^ 1);
    if (has_rows) {
      const int count = seen - begin;
      Parts<kParts> p;
      row_products<D, kParts>(queries, keys + buffer * kStepWords, count, lane, p);
      float step_largest[2] = {never, never};
      for_each_part<kParts>([&](int n, int e) {
        p[n][e] = logit(a, tile, tile.begin + lane.row(e), begin + lane.column(n, e), p[n][e], scale, kNoProducts);
        step_largest[e / 2] = fmaxf(step_largest[e / 2], p[n][e]);
      });
      float factor[2], subtracted[2];
      HEED_UNROLL
      for (int half = 0; half < 2; ++half) {
        const float now = fmaxf(largest[half], row_max(step_largest[half]));
        factor[half] = largest[half] > never ? fast_exp(largest[half] - now) : 0;
        largest[half] = now;
        subtracted[half] = finite_or_zero(now);
        total[half] *= factor[half];
      }
      for_each_part<D / 8>([&](int n, int e) { sums[n][e] *= factor[e / 2]; });
      for_each_part<kParts>([&](int n, int e) {
        p[n][e] = fast_exp(p[n][e] - subtracted[e / 2]);
        total[e / 2] += p[n][e];
        if (a.mask.kept && p[n][e] > 0)
          p[n][e] = drop(p[n][e], a.mask, weight_at(tile, tile.begin + lane.row(e), begin + lane.column(n, e)));
      });
      add_step_product<D, kParts>(p, values + buffer * kStepWords, count, lane, sums);
    }
    wait_for_rows();
  }
  if (!has_rows) return;
  HEED_UNROLL
  for (int half = 0; half < 2; ++half) total[half] = row_sum(total[half]);
  const float inverse[2] = {total[0] > 0 ? 1 / total[0] : 0, total[1] > 0 ? 1 / total[1] : 0};
  for_each_part<D / 8>([&](int n, int e) { sums[n][e] *= inverse[e / 2]; });
  const std::int64_t first = (tile.place.query_begin + tile.begin) * a.width + tile.head * a.d;
  store_rows<K, D>(sums, lane, rows, d, out_rounded ? out_rounded + first : nullptr, a.width,
                   [&](int row, int column, float element) { out[first + row * a.width + column] = element; });
  if (!a.normalisers || lane.t != 0) return;
  HEED_UNROLL
  for (int half = 0; half < 2; ++half)
    if (const int row = lane.row(2 * half); row < rows)
      a.normalisers[tile.softmax_at + tile.begin + row] = largest[half] + std::log(total[half]);
}

/// Computes the gradients of a tile of queries, and a.row_sums. The row sum of a query is the sum of P G over the keys,
/// which equals the dot product of the query's row of `out` and the gradient of that row, and is computed as this dot
/// product. The gradient is rounded to bfloat16 as in G. Without dropout, G minus the row sum is therefore exact for a
/// query that has one key.
template <Kind K, int D, int Warps>
__global__ void __launch_bounds__(32 * Warps)
    query_gradient_kernel(Operands operands, const float* out, const Bfloat16* out_rounded) {
  constexpr int kRows = 16 * Warps, kParts = kStep / 8, kStepWords = kStep * kRowWords<D>;
  const Operands a = known<K>(operands);
  const Tile tile(a);
  std::uint32_t *const queries = shared_memory<std::uint32_t>(), *const arrived = queries + kRows * kRowWords<D>,
                       *const keys = arrived + kRows * kRowWords<D>, *const values = keys + 2 * kStepWords;
  const Lane lane;
  const float scale = scale_of(a), never = -INFINITY;
  const int rows = tile.place.queries - tile.begin, d = static_cast<int>(a.d),
            seen = static_cast<int>(keys_of_tile(a, tile, kRows));
  const auto fetch = [&](int begin, int buffer) {
    fetch_keys<K, D, Warps>(a, tile, begin, keys + buffer * kStepWords, values + buffer * kStepWords);
  };
  fetch_rows<K, D, Warps, kRows>(tile.query + tile.begin * a.query_stride, a.query_stride, rows, d, queries);
  fetch_rows<K, D, Warps, kRows>(tile.out_gradient + tile.begin * a.width, a.width, rows, d, arrived);
  fetch(0, 0);
  wait_for_rows();
  const bool has_rows = lane.first_row < rows;
  float normaliser[2] = {}, row_sums[2] = {};
  if (has_rows) {
    const std::int64_t out_at = (tile.place.query_begin + tile.begin) * a.width + tile.head * a.d;
    HEED_UNROLL
    for (int half = 0; half < 2; ++half) {
      const int row = lane.row(2 * half);
      if (row < rows) {
        normaliser[half] = finite_or_zero(a.normalisers[tile.softmax_at + tile.begin + row]);
        for (int c = 2 * lane.t; c < d; c += 8)
          for (int next = 0; next < 2 && c + next < d; ++next) {
            const std::int64_t at = out_at + row * a.width + c + next;
            const std::uint32_t word = arrived[row * kRowWords<D> + c / 2] >> 16 * next;
            row_sums[half] += (K == Kind::plain || out_rounded ? from_bfloat16(out_rounded[at]) : out[at]) *
                              from_bfloat16(static_cast<Bfloat16>(word & 0xFFFF));
          }
      }
      row_sums[half] = row_sum(row_sums[half]);
      if (row < rows && lane.t == 0) a.row_sums[tile.softmax_at + tile.begin + row] = row_sums[half];
    }
  }
  Parts<D / 8> sums = {};
  for (int begin = 0, buffer = 0; begin < seen; begin += kStep, buffer ^= 1) {
    if (begin + kStep < seen) fetch(begin + kStep, buffer ^ 1);
    if (has_rows) {
      const int count = seen - begin;
      Parts<kParts> p, g;
      row_products<D, kParts>(queries, keys + buffer * kStepWords, count, lane, p);
      row_products<D, kParts>(arrived, values + buffer * kStepWords, count, lane, g);
      for_each_part<kParts>([&](int n, int e) {
        const int i = tile.begin + lane.row(e), j = begin + lane.column(n, e);
        const float s = logit(a, tile, i, j, p[n][e], scale, kNoProducts);
        if (K == Kind::general && s > never) g[n][e] = weight_gradient(a, tile, i, j, g[n][e], kNoProducts);
        const float ds = fast_exp(s - normaliser[e / 2]) * (g[n][e] - row_sums[e / 2]);
        store_logit_gradient(a, tile, i, j, ds);
        p[n][e] = scale * ds;
      });
      add_step_product<D, kParts>(p, keys + buffer * kStepWords, count, lane, sums);
    }
    wait_for_rows();
  }
  store_gradient<K, D>(sums, lane, rows, a, a.query_gradient, tile.place.query_begin + tile.begin, tile.head);
}

/// Computes the gradients of a tile of keys and values.
template <Kind K, int D, int Warps>
__global__ void __launch_bounds__(32 * Warps) key_gradient_kernel(Operands operands) {
  constexpr int kRows = 16 * Warps, kParts = kStep / 8, kStepWords = kStep * kRowWords<D>;
  const Operands a = known<K>(operands);
  const Tile tile(a);
  std::uint32_t *const keys = shared_memory<std::uint32_t>(), *const values = keys + kRows * kRowWords<D>,
                       *const queries = values + kRows * kRowWords<D>, *const arrived = queries + 2 * kStepWords;
  const Lane lane;
  const float scale = scale_of(a), never = -INFINITY;
  const int rows = tile.place.keys - tile.begin, d = static_cast<int>(a.d), all = tile.place.queries;
  const auto fetch = [&](int begin, int buffer) {
    fetch_rows<K, D, Warps, kStep>(tile.query + begin * a.query_stride, a.query_stride, all - begin, d,
                                   queries + buffer * kStepWords);
    fetch_rows<K, D, Warps, kStep>(tile.out_gradient + begin * a.width, a.width, all - begin, d,
                                   arrived + buffer * kStepWords);
  };
  fetch_rows<K, D, Warps, kRows>(tile.key + tile.begin * a.key_stride, a.key_stride, rows, d, keys);
  fetch_rows<K, D, Warps, kRows>(tile.value + tile.begin * a.value_stride, a.value_stride, rows, d, values);
  const int first = a.causal ? tile.begin : 0;  // of the queries that attend to these keys
  if (first < all) fetch(first, 0);
  wait_for_rows();
  const bool has_rows = lane.first_row < rows;
  Parts<D / 8> key_sums = {}, value_sums = {};
  for (int begin = first, buffer = 0; begin < all; begin += kStep, buffer ^= 1) {
    if (begin + kStep < all) fetch(begin + kStep, buffer ^ 1);
    if (has_rows) {
      const int count = all - begin;
      Parts<kParts> p, ds;
      row_products<D, kParts>(keys, queries + buffer * kStepWords, count, lane, p);
      row_products<D, kParts>(values, arrived + buffer * kStepWords, count, lane, ds);
      HEED_UNROLL
      for (int n = 0; n < kParts; ++n) HEED_UNROLL
      for (int next = 0; next < 2; ++next) {
        const int i = begin + lane.column(n, next);
        const bool exists = i < all;
        const float normaliser = exists ? finite_or_zero(a.normalisers[tile.softmax_at + i]) : 0,
                    row_sum = exists ? a.row_sums[tile.softmax_at + i] : 0;
        HEED_UNROLL
        for (int e = next; e < 4; e += 2) {
          const int j = tile.begin + lane.row(e);
          const float s = logit(a, tile, i, j, p[n][e], scale, kNoProducts);
          p[n][e] = fast_exp(s - normaliser);
          if (K == Kind::general && s > never) ds[n][e] = weight_gradient(a, tile, i, j, ds[n][e], kNoProducts);
          ds[n][e] = scale * p[n][e] * (ds[n][e] - row_sum);
          if (a.mask.kept && s > never) p[n][e] = drop(p[n][e], a.mask, weight_at(tile, i, j));
        }
      }
      add_step_product<D, kParts>(ds, queries + buffer * kStepWords, count, lane, key_sums);
      add_step_product<D, kParts>(p, arrived + buffer * kStepWords, count, lane, value_sums);
    }
    wait_for_rows();
  }
  const std::int64_t first_row = tile.place.key_begin + tile.begin;
  store_gradient<K, D>(key_sums, lane, rows, a, a.key_gradient, first_row, tile.head);
  store_gradient<K, D>(value_sums, lane, rows, a, a.value_gradient, first_row, tile.head);
}

/// The words that the threads of a block of sequence_gradient_kernel() share: four matrices of rows, and two of pairs.
template <int D, int Warps>
constexpr int kSequenceWords = 16 * Warps*(4 * kRowWords<D> + 2 * kRowWords<16 * Warps>);

/// Computes all gradients of one head of a sequence, whose queries and keys fit into a tile. The warps first have the
/// queries, and leave the attention weights after dropout and the gradients of the logits in shared memory, as matrices
/// [queries, keys]; then they have the keys, and read these matrices transposed.
template <Kind K, int D, int Warps>
__global__ void __launch_bounds__(32 * Warps) sequence_gradient_kernel(Operands operands) {
  constexpr int kRows = 16 * Warps, kParts = kRows / 8, kTileWords = kRows * kRowWords<D>,
                kPairWords = kRowWords<kRows>;
  const Operands a = known<K>(operands);
  const Tile tile(a);
  std::uint32_t *const queries = shared_memory<std::uint32_t>(), *const arrived = queries + kTileWords,
                       *const keys = arrived + kTileWords, *const values = keys + kTileWords,
                       *const weights = values + kTileWords, *const gradients = weights + kRows * kPairWords;
  const Lane lane;
  const float scale = scale_of(a), never = -INFINITY;
  const int all_queries = tile.place.queries, all_keys = tile.place.keys, d = static_cast<int>(a.d);
  fetch_rows<K, D, Warps, kRows>(tile.query, a.query_stride, all_queries, d, queries);
  fetch_rows<K, D, Warps, kRows>(tile.key, a.key_stride, all_keys, d, keys);
  fetch_rows<K, D, Warps, kRows>(tile.out_gradient, a.width, all_queries, d, arrived);
  fetch_rows<K, D, Warps, kRows>(tile.value, a.value_stride, all_keys, d, values);
  float normaliser[2] = {};
  HEED_UNROLL
  for (int half = 0; half < 2; ++half)
    if (const int row = lane.row(2 * half); row < all_queries)
      normaliser[half] = finite_or_zero(a.normalisers[tile.softmax_at + row]);
  wait_for_rows();
  if (lane.first_row < all_queries) {
    Parts<kParts> p, g;
    row_products<D, kParts>(queries, keys, all_keys, lane, p);
    row_products<D, kParts>(arrived, values, all_keys, lane, g);
    float row_sums[2] = {};
    for_each_part<kParts>([&](int n, int e) {
      const int i = lane.row(e), j = lane.column(n, e);
      const float s = logit(a, tile, i, j, p[n][e], scale, kNoProducts);
      p[n][e] = fast_exp(s - normaliser[e / 2]);
      if (K == Kind::general && s > never) g[n][e] = weight_gradient(a, tile, i, j, g[n][e], kNoProducts);
      row_sums[e / 2] += p[n][e] * g[n][e];
    });
    HEED_UNROLL
    for (float& sum : row_sums) sum = row_sum(sum);
    for_each_part<kParts>([&](int n, int e) {
      const int i = lane.row(e), j = lane.column(n, e);
      const float ds = p[n][e] * (g[n][e] - row_sums[e / 2]);
      store_logit_gradient(a, tile, i, j, ds);
      g[n][e] = scale * ds;
      if (a.mask.kept && p[n][e] > 0) p[n][e] = drop(p[n][e], a.mask, weight_at(tile, i, j));
    });
    HEED_UNROLL
    for (int n = 0; n < kParts; ++n) HEED_UNROLL
    for (int e = 0; e < 4; e += 2) {
      const int at = lane.row(e) * kPairWords + lane.column(n, e) / 2;
      weights[at] = pack_bfloat16(p[n][e], p[n][e + 1]);
      gradients[at] = pack_bfloat16(g[n][e], g[n][e + 1]);
    }
    Parts<D / 8> sums = {};
    add_step_product<D, kParts>(g, keys, all_keys, lane, sums);
    store_gradient<K, D>(sums, lane, all_queries, a, a.query_gradient, tile.place.query_begin, tile.head);
  }
  __syncthreads();
  if (lane.first_row >= all_keys) return;
  // The row that this lane names: of four matrices [8 queries, 8 keys], which are loaded transposed.
  const int of_matrix = (lane.l % 8 + lane.l / 16 * 8) * kPairWords + lane.first_row / 2 + lane.l / 8 % 2 * 4;
  const auto store = [&](const std::uint32_t* matrix, const std::uint32_t* rows, const GradientPlace<float>& gradient) {
    Parts<D / 8> sums = {};
    for (int i = 0; i < all_queries; i += 16) {
      std::uint32_t of_keys[4];
      load_transposed(of_keys, matrix + i * kPairWords + of_matrix);
      add_product<D>(of_keys, rows + i * kRowWords<D>, lane, sums);
    }
    store_gradient<K, D>(sums, lane, all_keys, a, gradient, tile.place.key_begin, tile.head);
  };
  store(gradients, queries, a.key_gradient);
  store(weights, arrived, a.value_gradient);
}

/// Tells whether a matrix, whose columns of a head are a.d, consists of packs of eight numbers.
bool has_packs(const Operands& a, const Bfloat16* matrix, std::int64_t stride) {
  return a.d % 8 == 0 && stride % 8 == 0 && reinterpret_cast<std::uintptr_t>(matrix) % 16 == 0;
}

/// Returns the kind of a forward pass that stores its result in `out`, where that is not null.
Kind kind_of(const Operands& a, const Bfloat16* out) {
  const bool plain = out && !a.mask.kept && !a.bias && !a.weights_gradient && !a.logit_gradients &&
                     has_packs(a, out, a.width) && has_packs(a, a.query, a.query_stride) &&
                     has_packs(a, a.key, a.key_stride) && has_packs(a, a.value, a.value_stride);
  return plain ? Kind::plain : Kind::general;
}
/// The same for the backward pass.
Kind backward_kind_of(const Operands& a, const Bfloat16* out) {
  const auto is_plain = [&](const GradientPlace<float>& gradient) {
    return gradient.rounded && has_packs(a, gradient.rounded, gradient.stride);
  };
  const bool plain = kind_of(a, out) == Kind::plain && has_packs(a, a.out_gradient, a.width) &&
                     is_plain(a.query_gradient) && is_plain(a.key_gradient) && is_plain(a.value_gradient);
  return plain ? Kind::plain : Kind::general;
}

/// Calls function(kind, width), where kind.value is `kind`, and width.value the smallest of the widths 32, 64 and 128
/// that is not below d.
template <class Function>
void with_kind(Kind kind, std::int64_t d, const Function& function) {
  const auto with_width = [&](auto of_kind) {
    if (d <= 32) return function(of_kind, std::integral_constant<int, 32>());
    if (d <= 64) return function(of_kind, std::integral_constant<int, 64>());
    function(of_kind, std::integral_constant<int, 128>());
  };
  if (kind == Kind::plain) return with_width(std::integral_constant<Kind, Kind::plain>());
  with_width(std::integral_constant<Kind, Kind::general>());
}

/// Launches a kernel with a block for each of these tiles and each head, and the two arguments, whose threads share
/// memory for `words` words. `Warps` is the number of warps of a block.
template <int Warps, class... Parameters>
void launch_tiles(CudaContext& device, Operands a, const std::vector<TileBegin>& tiles, int words,
                  void (*kernel)(Operands, Parameters...), std::type_identity_t<Parameters>... arguments) {
  if (tiles.empty()) return;
  a.tiles = upload<TileBegin>(device, tiles);
  const auto blocks = static_cast<unsigned>(std::ssize(tiles) * a.heads);
  launch(device, {blocks, 32 * Warps, static_cast<std::size_t>(words) * sizeof(std::uint32_t)}, kernel, a,
         arguments...);
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

/// Returns the operands of the kernels, without tiles.
Operands rounded_operands(CudaContext& device, const AttentionArrays<float>& arrays) {
  Operands a = operands_of<Bfloat16>(device, arrays);
  a.query_stride = arrays.query_stride;
  a.key_stride = arrays.key_stride;
  a.value_stride = arrays.value_stride;
  const std::int64_t queries = arrays.queries.tokens(), keys = arrays.keys.tokens(), width = arrays.width;
  a.query = in_bfloat16(device, arrays.query, arrays.rounded.query, queries, width, a.query_stride);
  a.key = in_bfloat16(device, arrays.key, arrays.rounded.key, keys, width, a.key_stride);
  a.value = in_bfloat16(device, arrays.value, arrays.rounded.value, keys, width, a.value_stride);
  return a;
}

constexpr int kShortRows = 16 * kShortWarps, kLongRows = 16 * kLongWarps;  // of a tile

/// Tells whether a sequence of this length has tiles of kShortRows rows.
bool is_short(Kind kind, std::int32_t length) {
  return kind == Kind::plain && length <= kShortRows;
}

}  // namespace

void tensor_core_attention_forward(CudaContext& device, const AttentionArrays<float>& arrays, float* kept,
                                   MaybeRounded<float> out) {
  const ArenaScope scope(device.arena);
  Operands a = rounded_operands(device, arrays);
  a.normalisers = kept;
  const Kind kind = kind_of(a, out.rounded.data());
  std::vector<TileBegin> of_short, of_long;
  for (int b = 0; b < arrays.queries.sequences(); ++b) {
    const std::int32_t length = arrays.queries.length(b);
    is_short(kind, length) ? add_tiles(of_short, b, length, kShortRows) : add_tiles(of_long, b, length, kLongRows);
  }
  with_kind(kind, a.d, [&](auto of_kind, auto width) {
    constexpr Kind kKind = decltype(of_kind)::value;
    constexpr int kD = decltype(width)::value;
    const auto words = [](int rows) { return (rows + 4 * kStep) * kRowWords<kD>; };
    if constexpr (kKind == Kind::plain)
      launch_tiles<kShortWarps>(device, a, of_short, words(kShortRows), forward_kernel<kKind, kD, kShortWarps>,
                                out.full.data(), out.rounded.data());
    launch_tiles<kLongWarps>(device, a, of_long, words(kLongRows), forward_kernel<kKind, kD, kLongWarps>,
                             out.full.data(), out.rounded.data());
  });
}

void tensor_core_attention_backward(CudaContext& device, const AttentionArrays<float>& arrays, const float* kept,
                                    MaybeRounded<float> out, MaybeRounded<float> out_gradient) {
  const ArenaScope scope(device.arena);
  Operands a = rounded_operands(device, arrays);
  prepare_backward(device, arrays, kept, a);
  std::int64_t stride = arrays.width;
  a.out_gradient =
      in_bfloat16(device, out_gradient.full.data(), out_gradient.rounded.data(), a.tokens, a.width, stride);
  const Kind kind = backward_kind_of(a, out.rounded.data());
  std::vector<TileBegin> of_short, of_long, of_queries, of_keys;
  for (int b = 0; b < arrays.queries.sequences(); ++b) {
    const std::int32_t queries = arrays.queries.length(b), keys = arrays.keys.length(b),
                       longer = std::max(queries, keys);
    if (longer <= kLongRows) {
      add_tiles(is_short(kind, longer) ? of_short : of_long, b, longer, kLongRows);
    } else {
      add_tiles(of_queries, b, queries, kLongRows);
      add_tiles(of_keys, b, keys, kLongRows);
    }
  }
  with_kind(kind, a.d, [&](auto of_kind, auto width) {
    constexpr Kind kKind = decltype(of_kind)::value;
    constexpr int kD = decltype(width)::value;
    if constexpr (kKind == Kind::plain)
      launch_tiles<kShortWarps>(device, a, of_short, kSequenceWords<kD, kShortWarps>,
                                sequence_gradient_kernel<kKind, kD, kShortWarps>);
    launch_tiles<kLongWarps>(device, a, of_long, kSequenceWords<kD, kLongWarps>,
                             sequence_gradient_kernel<kKind, kD, kLongWarps>);
    constexpr int kWords = (2 * kLongRows + 4 * kStep) * kRowWords<kD>;
    launch_tiles<kLongWarps>(device, a, of_queries, kWords, query_gradient_kernel<kKind, kD, kLongWarps>,
                             out.full.data(), out.rounded.data());
    if (a.key_gradient || a.value_gradient)
      launch_tiles<kLongWarps>(device, a, of_keys, kWords, key_gradient_kernel<kKind, kD, kLongWarps>);
  });
  if (arrays.positions.bias_gradient)
    add_bias_gradient(device, a, arrays.queries.sequences(), arrays.positions.bias_gradient);
}

}  // namespace heed
