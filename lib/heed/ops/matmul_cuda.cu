#include "heed/ops/gemm/gemm.h"
#include "heed/ops/matmul.h"
#include "heed/tensor/cuda_language.h"

namespace heed {
namespace {

/// Returns the number of matrices in x: the first dimension of a batch, or 1 for a single matrix.
template <class T>
std::int64_t batch_of(Tensor<T> x) {
  return x.shape().rank() == 3 ? x.dim(0) : 1;
}

/// The width of the square tiles that are transposed in shared memory, so that both matrices are read and written in
/// neighbouring elements.
constexpr int kTile = 32;
/// The number of rows of a tile that the threads of a block read at a time.
constexpr int kTileRows = 8;

/// Transposes one tile of a matrix [m, n], or of each matrix in a batch: to = beta to + x^T.
template <class T>
__global__ void transpose_kernel(const T* x, std::int64_t m, std::int64_t n, T beta, T* to) {
  // One more column than the tile has, so that a column of the tile lies in all banks of the memory.
  constexpr int kStride = kTile + 1;
  T* const tile = shared_memory<T>();
  const std::int64_t across = (n + kTile - 1) / kTile, tiles = across * ((m + kTile - 1) / kTile);
  const std::int64_t matrix = blockIdx.x / tiles * m * n, at = blockIdx.x % tiles;
  const std::int64_t row = at / across * kTile, column = at % across * kTile;
  const int lane = static_cast<int>(threadIdx.x) % kTile, first = static_cast<int>(threadIdx.x) / kTile;
  for (int i = first; i < kTile; i += kTileRows)
    if (row + i < m && column + lane < n) tile[i * kStride + lane] = x[matrix + (row + i) * n + column + lane];
  __syncthreads();
  for (int i = first; i < kTile; i += kTileRows) {
    if (column + i >= n || row + lane >= m) continue;
    T& target = to[matrix + (column + i) * m + row + lane];
    target = beta != 0 ? target + tile[lane * kStride + i] : tile[lane * kStride + i];
  }
}

}  // namespace

template <class T>
void matmul_forward(CudaContext& device, Tensor<T> a, Tensor<T> b, Tensor<T> y) {
  const std::int64_t m = y.dim(y.shape().rank() - 2), n = y.columns(), k = a.columns();
  for (std::int64_t i = 0; i < batch_of(y); ++i)
    gemm(device, m, n, k, T(1), GemmOperand<T>{a.data() + i * m * k, k}, GemmOperand<T>{b.data() + i * k * n, n}, T(0),
         y.data() + i * m * n, n);
}

template <class T>
void matmul_backward(CudaContext& device, Tensor<T> a, Tensor<T> b, Tensor<T> dy, Tensor<T> da, Tensor<T> db) {
  const std::int64_t m = dy.dim(dy.shape().rank() - 2), n = dy.columns(), k = a.columns();
  if (m == 0 || n == 0) return;
  for (std::int64_t i = 0; i < batch_of(dy); ++i) {
    const GemmOperand<T> g{dy.data() + i * m * n, n};
    if (da)
      gemm(device, m, k, n, T(1), g, GemmOperand<T>{b.data() + i * k * n, n, true}, T(1), da.data() + i * m * k, k);
    if (db)
      gemm(device, k, n, m, T(1), GemmOperand<T>{a.data() + i * m * k, k, true}, g, T(1), db.data() + i * k * n, n);
  }
}

template <class T>
void transpose_into(CudaContext& device, Tensor<T> x, T beta, Tensor<T> to) {
  const std::int64_t m = x.dim(x.shape().rank() - 2), n = x.columns();
  const std::int64_t tiles = (n + kTile - 1) / kTile * ((m + kTile - 1) / kTile) * batch_of(x);
  const LaunchShape shape{static_cast<unsigned>(tiles), kTile * kTileRows, kTile * (kTile + 1) * sizeof(T)};
  launch(device, shape, transpose_kernel<T>, x.data(), m, n, beta, to.data());
}

template void matmul_forward(CudaContext&, Tensor<float>, Tensor<float>, Tensor<float>);
template void matmul_forward(CudaContext&, Tensor<double>, Tensor<double>, Tensor<double>);
template void matmul_backward(CudaContext&, Tensor<float>, Tensor<float>, Tensor<float>, Tensor<float>, Tensor<float>);
template void matmul_backward(CudaContext&, Tensor<double>, Tensor<double>, Tensor<double>, Tensor<double>,
                              Tensor<double>);
template void transpose_into(CudaContext&, Tensor<float>, float, Tensor<float>);
template void transpose_into(CudaContext&, Tensor<double>, double, Tensor<double>);

}  // namespace heed
