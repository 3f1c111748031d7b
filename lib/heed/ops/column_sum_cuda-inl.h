// Sums over the rows of a matrix, in kernels of GPUs: the gradients of biases and gains, and the statistics of columns.
//
// The rows are divided into chunks, whose number depends on the size of the matrix alone. A block of 256 threads sums a
// tile of columns of a chunk: thread t has one column or, where the summands are read in packs, several columns next to
// each other, and every 8th row of the chunk. The block then adds the 8 sums of each column in order, and a second
// launch adds the chunks in the same way; its blocks have narrow tiles, and 32 threads for each column, because it has
// few rows. For 100 rows and 40 columns, without packs:
//
//   first launch, 4 chunks x 2 tiles of columns: a block for rows 0 ... 24 of columns 0 ... 31, and so on
//   second launch, 1 chunk x 5 tiles: a block adds rows 0 ... 3 of the sums of the first launch, of 8 columns
#pragma once

#include <array>

#include "heed/ops/gemm/maybe_rounded.h"
#include "heed/tensor/cuda_language.h"
#include "heed/tensor/cuda_packs.h"
#include "heed/tensor/tensor.h"

namespace heed {

constexpr int kColumnSumThreads = 256;  ///< the threads of a block of column_sums_kernel()
/// The threads of this block that share a row, in the first and in the second launch.
constexpr int kColumnSumLanes = 32, kPartSumLanes = 8;

/// Computes to[k][chunk, column] = beta * to[k][chunk, column] + factor * sum of the summands over the rows of each
/// chunk of `chunk_rows` rows. A null to[k] is skipped; with beta 0, `to` is not read. `summands` is described at
/// sum_packs().
template <class T, std::size_t N, int kLanes, class Summands>
__global__ __launch_bounds__(kColumnSumThreads, 3) void column_sums_kernel(Summands summands, std::int64_t rows,
                                                                           std::int64_t columns,
                                                                           std::int64_t chunk_rows, T factor, T beta,
                                                                           std::array<T*, N> to) {
  constexpr int kColumns = Summands::kColumns, kAtOnce = Summands::kRowsAtOnce;
  constexpr int kTile = kLanes * kColumns, kRowStep = kColumnSumThreads / kLanes;
  const auto tiles = static_cast<unsigned>((columns + kTile - 1) / kTile);
  const std::int64_t chunk = blockIdx.x / tiles, tile = std::int64_t{blockIdx.x % tiles} * kTile;
  const int thread = static_cast<int>(threadIdx.x), place = thread % kLanes * kColumns;
  const std::int64_t column = tile + place, end = std::min(rows, (chunk + 1) * chunk_rows);
  Pack<T, kColumns> sums[N]{};
  if (column < columns)
    for (std::int64_t row = chunk * chunk_rows + thread / kLanes; row < end; row += kAtOnce * kRowStep) {
      // Several rows are requested before the first of them is needed.
      typename Summands::Loaded loaded[kAtOnce]{};
      HEED_UNROLL
      for (int r = 0; r < kAtOnce; ++r)
        if (row + r * kRowStep < end) loaded[r] = summands.load(row + r * kRowStep, column);
      HEED_UNROLL
      for (int r = 0; r < kAtOnce; ++r) {
        if (row + r * kRowStep >= end) break;
        const std::array<Pack<T, kColumns>, N> values = summands(loaded[r], row + r * kRowStep, column);
        HEED_UNROLL
        for (std::size_t k = 0; k < N; ++k) {
          HEED_UNROLL
          for (int c = 0; c < kColumns; ++c) sums[k][c] += values[k][c];
        }
      }
    }
  T* const shared = shared_memory<T>();
  HEED_UNROLL
  for (std::size_t k = 0; k < N; ++k) {
    HEED_UNROLL
    for (int c = 0; c < kColumns; ++c) shared[(k * kRowStep + thread / kLanes) * kTile + place + c] = sums[k][c];
  }
  __syncthreads();
  for (int c = thread; c < kTile && tile + c < columns; c += kColumnSumThreads)
    for (std::size_t k = 0; k < N; ++k) {
      if (!to[k]) continue;
      T sum = 0;
      for (int r = 0; r < kRowStep; ++r) sum += shared[(k * kRowStep + r) * kTile + c];
      T& target = to[k][chunk * columns + tile + c];
      target = beta != 0 ? beta * target + factor * sum : factor * sum;
    }
}

/// Summands of sum_packs() that are read one by one: element(row, column) returns N numbers.
template <class T, std::size_t N, class Element>
struct SingleSummands {
  static constexpr int kColumns = 1, kRowsAtOnce = 4;
  using Loaded = std::array<T, N>;
  Element element;

  __device__ Loaded load(std::int64_t row, std::int64_t column) const { return element(row, column); }
  __device__ std::array<Pack<T, 1>, N> operator()(const Loaded& loaded, std::int64_t, std::int64_t) const {
    std::array<Pack<T, 1>, N> out;
    for (std::size_t k = 0; k < N; ++k) out[k][0] = loaded[k];
    return out;
  }
};

/// The elements of N matrices, whose rows begin `stride` elements apart, as summands of column_sums(). A null matrix
/// counts as zeros.
template <class T, std::size_t N>
struct MatrixElements {
  std::array<const T*, N> x;
  std::int64_t stride;

  __device__ std::array<T, N> operator()(std::int64_t row, std::int64_t column) const {
    std::array<T, N> values{};
    for (std::size_t k = 0; k < N; ++k)
      if (x[k]) values[k] = x[k][row * stride + column];
    return values;
  }
};

/// Adds N matrices of partial sums [chunks, columns] over their rows: to[k][column] = beta * to[k][column] + factor *
/// sum of parts[k]. A null to[k] is skipped; with beta 0, `to` is not read.
template <class T, std::size_t N>
void sum_parts(CudaContext& device, std::int64_t chunks, std::int64_t columns, const std::array<T*, N>& parts,
               std::type_identity_t<T> factor, std::type_identity_t<T> beta, const std::array<T*, N>& to) {
  using Summands = SingleSummands<T, N, MatrixElements<T, N>>;
  Summands summands{{{}, columns}};
  for (std::size_t k = 0; k < N; ++k) summands.element.x[k] = to[k] ? parts[k] : nullptr;
  const std::int64_t tiles = (columns + kPartSumLanes - 1) / kPartSumLanes;
  launch(device, {static_cast<unsigned>(tiles), kColumnSumThreads, N * kColumnSumThreads * sizeof(T)},
         column_sums_kernel<T, N, kPartSumLanes, Summands>, summands, chunks, columns, chunks, factor, beta, to);
}

/// Computes N sums over the rows for each column at once: to[k][column] = beta * to[k][column] + factor * sum of the
/// summands over the rows. A null to[k] is skipped; with beta 0, `to` is not read.
///
/// `summands` is an object whose members are numbers and addresses of the GPU, with `__device__` functions:
/// load(row, column) reads what belongs to Summands::kColumns columns, and the call operator computes from that N packs
/// of summands. Each is called once for each row and pack of columns, so that the call operator may also store what it
/// computes. If the number of columns is not a multiple of kColumns, the last pack has columns behind
/// the matrix, which load() must be able to read; their sums are not stored. kRowsAtOnce calls of load() come before
/// the first of their summands is computed. The sums do not depend on kColumns.
template <class T, std::size_t N, class Summands>
void sum_packs(CudaContext& device, std::int64_t rows, std::int64_t columns, const Summands& summands,
               std::type_identity_t<T> factor, std::type_identity_t<T> beta, const std::array<T*, N>& to) {
  constexpr std::int64_t kChunkRows = 32, kMostBlocks = 1024, kWidestTile = 8 * kColumnSumLanes;
  constexpr std::int64_t kTile = std::int64_t{Summands::kColumns} * kColumnSumLanes;
  static_assert(kTile <= kWidestTile);
  const std::int64_t most = std::max<std::int64_t>(kMostBlocks * kWidestTile / std::max(columns, kWidestTile), 1);
  const std::int64_t chunks = std::clamp<std::int64_t>((rows + kChunkRows - 1) / kChunkRows, 1, most);
  const std::int64_t tiles = (columns + kTile - 1) / kTile;
  const LaunchShape shape{static_cast<unsigned>(chunks * tiles), kColumnSumThreads,
                          N * kColumnSumThreads * Summands::kColumns * sizeof(T)};
  constexpr auto kKernel = column_sums_kernel<T, N, kColumnSumLanes, Summands>;
  if (chunks == 1) return launch(device, shape, kKernel, summands, rows, columns, rows, factor, beta, to);
  const ArenaScope scope(device.arena);
  std::array<T*, N> parts{};
  bool wanted = false;
  for (std::size_t k = 0; k < N; ++k)
    if (to[k]) {
      parts[k] = device.arena.tensor<T>({chunks, columns}).data();
      wanted = true;
    }
  launch(device, shape, kKernel, summands, rows, columns, (rows + chunks - 1) / chunks, T(1), T(0), parts);
  if (wanted) sum_parts(device, chunks, columns, parts, factor, beta, to);
}

/// Computes N sums over the rows for each column at once, as sum_packs() does, of summands that are read one by one:
/// summands(row, column) returns a std::array<T, N>.
template <class T, std::size_t N, class Summands>
void column_sums(CudaContext& device, std::int64_t rows, std::int64_t columns, const Summands& summands,
                 std::type_identity_t<T> factor, std::type_identity_t<T> beta, const std::array<T*, N>& to) {
  sum_packs(device, rows, columns, SingleSummands<T, N, Summands>{summands}, factor, beta, to);
}

/// Adds the rows of x [rows, columns], which begin `stride` elements apart, to `sums` [columns].
template <class T>
void add_column_sums(CudaContext& device, const T* x, std::int64_t rows, std::int64_t stride, std::int64_t columns,
                     T* sums) {
  column_sums(device, rows, columns, MatrixElements<T, 1>{{x}, stride}, 1, 1, std::array<T*, 1>{sums});
}
/// Adds the rows of x [N, D] to `sums` [D].
template <class T>
void add_column_sums(CudaContext& device, Tensor<T> x, Tensor<T> sums) {
  add_column_sums(device, static_cast<const T*>(x.data()), x.rows(), x.columns(), x.columns(), sums.data());
}

/// The elements of a matrix that is stored as bfloat16, as summands of sum_packs().
template <int N>
struct RoundedSummands {
  static constexpr int kColumns = N, kRowsAtOnce = 4;
  using Loaded = Pack<Bfloat16, N>;
  const Bfloat16* x;
  std::int64_t stride;

  __device__ Loaded load(std::int64_t row, std::int64_t column) const {
    return load_pack<N>(x + row * stride + column);
  }
  __device__ std::array<Pack<float, N>, 1> operator()(const Loaded& loaded, std::int64_t, std::int64_t) const {
    return {widen_pack<float>(loaded)};
  }
};
/// Adds the first D columns of the rows of x, of its rounded numbers where these are stored, to `sums` [D].
template <class T>
void add_column_sums(CudaContext& device, const MaybeRounded<T>& x, Tensor<T> sums) {
  if constexpr (std::is_same_v<T, float>)
    if (x.rounded) {
      const std::array<float*, 1> to{sums.data()};
      const Bfloat16* const elements = x.rounded.data();
      return with_packs<8>(takes_packs<8>(x.columns(), elements), [&](auto pack) {
        sum_packs(device, x.rows(), sums.size(), RoundedSummands<pack.value>{elements, x.columns()}, 1, 1, to);
      });
    }
  add_column_sums(device, static_cast<const T*>(x.full.data()), x.rows(), x.columns(), sums.size(), sums.data());
}

}  // namespace heed
