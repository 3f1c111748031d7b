// Sums over the rows of a matrix, in kernels of GPUs: the gradients of biases and gains, and the statistics of columns.
//
// The rows are divided into chunks, whose number depends on the number of rows alone. A block sums 32 columns of a
// chunk: thread t has column t % 32, and every 8th row of the chunk from row t / 32 on. The block then adds the 8 sums
// of each column in order, and a second launch adds the chunks in the same way. For 100 rows and 40 columns:
//
//   first launch, 2 chunks x 2 tiles of columns: a block for rows 0 ... 49 of columns 0 ... 31, and so on
//   second launch, 1 chunk x 2 tiles: a block adds rows 0 and 1 of the sums of the first launch
#pragma once

#include <array>

#include "heed/ops/gemm/maybe_rounded.h"
#include "heed/tensor/cuda_language.h"
#include "heed/tensor/tensor.h"

namespace heed {

constexpr std::int64_t kColumnSumTile = 32;    ///< the columns of a block of column_sums_kernel()
constexpr std::int64_t kColumnSumThreads = 8;  ///< the threads of this block for each column

/// Computes to[k][chunk, column] = beta * to[k][chunk, column] + factor * sum of summands(row, column)[k] over the rows
/// of each chunk. A null to[k] is skipped; with beta 0, `to` is not read.
template <class T, std::size_t N, class Summands>
__global__ void column_sums_kernel(Summands summands, std::int64_t rows, std::int64_t columns, std::int64_t chunks,
                                   T factor, T beta, std::array<T*, N> to) {
  const std::int64_t tiles = (columns + kColumnSumTile - 1) / kColumnSumTile, chunk = blockIdx.x / tiles;
  const std::int64_t lane = threadIdx.x % kColumnSumTile, column = blockIdx.x % tiles * kColumnSumTile + lane;
  const std::int64_t size = (rows + chunks - 1) / chunks, end = std::min(rows, (chunk + 1) * size);
  std::array<T, N> sums{};
  if (column < columns)
    for (std::int64_t row = chunk * size + threadIdx.x / kColumnSumTile; row < end; row += kColumnSumThreads) {
      const std::array<T, N> values = summands(row, column);
      for (std::size_t k = 0; k < N; ++k) sums[k] += values[k];
    }
  T* const shared = shared_memory<T>();
  for (std::size_t k = 0; k < N; ++k) shared[k * blockDim.x + threadIdx.x] = sums[k];
  __syncthreads();
  if (threadIdx.x >= kColumnSumTile || column >= columns) return;
  for (std::size_t k = 0; k < N; ++k) {
    if (!to[k]) continue;
    T sum = 0;
    for (std::int64_t t = 0; t < kColumnSumThreads; ++t) sum += shared[k * blockDim.x + t * kColumnSumTile + lane];
    T& target = to[k][chunk * columns + column];
    target = beta != 0 ? beta * target + factor * sum : factor * sum;
  }
}

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

/// Computes N sums over the rows for each column at once: to[k][column] = beta * to[k][column] + factor * sum of
/// summands(row, column)[k] over the rows. `summands` is an object whose members are numbers and addresses of the GPU,
/// with a `__device__` operator() that returns a std::array<T, N>. A null to[k] is skipped; with beta 0, `to` is not
/// read.
template <class T, std::size_t N, class Summands>
void column_sums(CudaContext& device, std::int64_t rows, std::int64_t columns, const Summands& summands,
                 std::type_identity_t<T> factor, std::type_identity_t<T> beta, const std::array<T*, N>& to) {
  constexpr std::int64_t kChunkRows = 64, kMostChunks = 256;
  const std::int64_t chunks = std::clamp<std::int64_t>((rows + kChunkRows - 1) / kChunkRows, 1, kMostChunks);
  const std::int64_t tiles = (columns + kColumnSumTile - 1) / kColumnSumTile;
  constexpr auto kThreads = static_cast<unsigned>(kColumnSumTile * kColumnSumThreads);
  const auto shape = [&](std::int64_t blocks) {
    return LaunchShape{static_cast<unsigned>(blocks), kThreads, N * kThreads * sizeof(T)};
  };
  if (chunks == 1)
    return launch(device, shape(tiles), column_sums_kernel<T, N, Summands>, summands, rows, columns, chunks, factor,
                  beta, to);
  const ArenaScope scope(device.arena);
  std::array<T*, N> parts{};
  MatrixElements<T, N> elements{{}, columns};
  for (std::size_t k = 0; k < N; ++k)
    if (to[k]) elements.x[k] = parts[k] = device.arena.tensor<T>({chunks, columns}).data();
  launch(device, shape(chunks * tiles), column_sums_kernel<T, N, Summands>, summands, rows, columns, chunks, T(1), T(0),
         parts);
  launch(device, shape(tiles), column_sums_kernel<T, N, MatrixElements<T, N>>, elements, chunks, columns, 1, factor,
         beta, to);
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

/// The elements of a matrix that is stored as bfloat16, as summands of column_sums().
struct RoundedElements {
  const Bfloat16* x;
  std::int64_t columns;

  __device__ std::array<float, 1> operator()(std::int64_t row, std::int64_t column) const {
    return {from_bfloat16(x[row * columns + column])};
  }
};
/// Adds the rows of x [N, D], of its rounded numbers where these are stored, to `sums` [D].
template <class T>
void add_column_sums(CudaContext& device, const MaybeRounded<T>& x, Tensor<T> sums) {
  if constexpr (std::is_same_v<T, float>)
    if (x.rounded)
      return column_sums(device, x.rows(), x.columns(), RoundedElements{x.rounded.data(), x.columns()}, 1, 1,
                         std::array<float*, 1>{sums.data()});
  add_column_sums(device, x.full, sums);
}

}  // namespace heed
