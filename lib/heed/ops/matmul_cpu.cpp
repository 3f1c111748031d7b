#include <algorithm>

#include "heed/ops/gemm/gemm.h"
#include "heed/ops/matmul.h"

namespace heed {
namespace {

/// Returns the number of matrices in x: the first dimension of a batch, or 1 for a single matrix.
template <class T>
std::int64_t batch_of(Tensor<T> x) {
  return x.shape().rank() == 3 ? x.dim(0) : 1;
}

}  // namespace

template <class T>
void matmul_forward(CpuContext& device, Tensor<T> a, Tensor<T> b, Tensor<T> y) {
  const std::int64_t m = y.dim(y.shape().rank() - 2), n = y.columns(), k = a.columns();
  for (std::int64_t i = 0; i < batch_of(y); ++i)
    gemm(device, m, n, k, T(1), {a.data() + i * m * k, k}, {b.data() + i * k * n, n}, T(0), y.data() + i * m * n, n);
}

template <class T>
void matmul_backward(CpuContext& device, Tensor<T> a, Tensor<T> b, Tensor<T> dy, Tensor<T> da, Tensor<T> db) {
  const std::int64_t m = dy.dim(dy.shape().rank() - 2), n = dy.columns(), k = a.columns();
  if (m == 0 || n == 0) return;
  for (std::int64_t i = 0; i < batch_of(dy); ++i) {
    const T* g = dy.data() + i * m * n;
    if (da) gemm(device, m, k, n, T(1), {g, n}, {b.data() + i * k * n, n, true}, T(1), da.data() + i * m * k, k);
    if (db) gemm(device, k, n, m, T(1), {a.data() + i * m * k, k, true}, {g, n}, T(1), db.data() + i * k * n, n);
  }
}

template <class T>
void transpose_into(CpuContext&, Tensor<T> x, T beta, Tensor<T> to) {
  // 16 rows of x are transposed at a time: the cache lines of these rows stay in the cache while they are read, and 16
  // neighbouring elements of `to` are written together.
  constexpr std::int64_t kTile = 16;
  const std::int64_t m = x.dim(x.shape().rank() - 2), n = x.columns();
  for (std::int64_t i = 0; i < batch_of(x); ++i) {
    const T* from = x.data() + i * m * n;
    T* out = to.data() + i * m * n;
    for (std::int64_t r0 = 0; r0 < m; r0 += kTile)
      for (std::int64_t c = 0; c < n; ++c)
        for (std::int64_t r = r0; r < std::min(m, r0 + kTile); ++r)
          out[c * m + r] = from[r * n + c] + (beta == 0 ? T(0) : out[c * m + r]);
  }
}

template void matmul_forward(CpuContext&, Tensor<float>, Tensor<float>, Tensor<float>);
template void matmul_forward(CpuContext&, Tensor<double>, Tensor<double>, Tensor<double>);
template void matmul_backward(CpuContext&, Tensor<float>, Tensor<float>, Tensor<float>, Tensor<float>, Tensor<float>);
template void matmul_backward(CpuContext&, Tensor<double>, Tensor<double>, Tensor<double>, Tensor<double>,
                              Tensor<double>);
template void transpose_into(CpuContext&, Tensor<float>, float, Tensor<float>);
template void transpose_into(CpuContext&, Tensor<double>, double, Tensor<double>);

}  // namespace heed
