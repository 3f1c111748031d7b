#include "heed/ops/heads.h"

#include "heed/ops/column_sum_cuda-inl.h"
#include "heed/tensor/cuda_language.h"

namespace heed {
namespace {

/// A thread has an element of `to`, which is [B, length, heads, d] where merged and [B, heads, length, d] where split:
/// x has the two middle dimensions the other way round.
template <class T>
__global__ void rearrange_heads_kernel(const T* x, std::int64_t length, std::int64_t heads, std::int64_t d, bool merge,
                                       T beta, T* to, std::int64_t n) {
  const std::int64_t outer = merge ? length : heads, inner = merge ? heads : length;
  for_each_element(n, [&](std::int64_t i) {
    const std::int64_t column = i % d, q = i / d % inner, p = i / d / inner % outer, b = i / d / inner / outer;
    const T value = x[((b * inner + q) * outer + p) * d + column];
    to[i] = beta != 0 ? to[i] + value : value;
  });
}

/// Computes the mean over the heads; `size` is the number of elements of a sequence of y.
template <class T>
__global__ void mean_over_heads_kernel(const T* x, std::int64_t heads, std::int64_t size, T* y, std::int64_t n) {
  for_each_element(n, [&](std::int64_t i) {
    const T* const from = x + i / size * heads * size + i % size;
    T sum = 0;
    for (std::int64_t h = 0; h < heads; ++h) sum += from[h * size];
    y[i] = sum / static_cast<T>(heads);
  });
}

template <class T>
__global__ void mean_over_heads_gradient_kernel(const T* dy, std::int64_t heads, std::int64_t size, T* dx,
                                                std::int64_t n) {
  for_each_element(n, [&](std::int64_t i) { dx[i] += dy[i / size / heads * size + i % size] / static_cast<T>(heads); });
}

/// Copies sequences of `size` elements, and appends `width` elements to each.
template <class T>
__global__ void append_row_kernel(const T* x, const T* row, std::int64_t size, std::int64_t width, T* y,
                                  std::int64_t n) {
  for_each_element(n, [&](std::int64_t i) {
    const std::int64_t b = i / (size + width), place = i % (size + width);
    y[i] = place < size ? x[b * size + place] : row ? row[place - size] : T(0);
  });
}

template <class T>
__global__ void append_row_gradient_kernel(const T* dy, std::int64_t size, std::int64_t width, T* dx, std::int64_t n) {
  for_each_element(n, [&](std::int64_t i) { dx[i] += dy[i / size * (size + width) + i % size]; });
}

/// The last rows of all sequences, as summands of column_sums(). A sequence has `size` elements before the last row.
template <class T>
struct LastRows {
  const T* dy;
  std::int64_t size, width;

  __device__ std::array<T, 1> operator()(std::int64_t b, std::int64_t column) const {
    return {dy[b * (size + width) + size + column]};
  }
};

}  // namespace

template <class T>
void rearrange_heads(CudaContext& device, const T* x, const Shape& rows, int heads, bool merge, T beta, T* to) {
  launch(device, shape_for_elements(rows.size()), rearrange_heads_kernel<T>, x, rows[1], heads, rows[2] / heads, merge,
         beta, to, rows.size());
}

template <class T>
void mean_over_heads_forward(CudaContext& device, Tensor<T> x, int heads, Tensor<T> y) {
  launch(device, shape_for_elements(y.size()), mean_over_heads_kernel<T>, x.data(), heads, y.dim(1) * y.dim(2),
         y.data(), y.size());
}

template <class T>
void mean_over_heads_backward(CudaContext& device, Tensor<T> dy, int heads, Tensor<T> dx) {
  launch(device, shape_for_elements(dx.size()), mean_over_heads_gradient_kernel<T>, dy.data(), heads,
         dy.dim(1) * dy.dim(2), dx.data(), dx.size());
}

template <class T>
void append_row_forward(CudaContext& device, Tensor<T> x, Tensor<T> row, Tensor<T> y) {
  launch(device, shape_for_elements(y.size()), append_row_kernel<T>, x.data(), row.data(), x.dim(1) * x.dim(2),
         x.dim(2), y.data(), y.size());
}

template <class T>
void append_row_backward(CudaContext& device, Tensor<T> dy, Tensor<T> dx, Tensor<T> drow) {
  const std::int64_t width = dy.dim(2), size = (dy.dim(1) - 1) * width;
  if (dx)
    launch(device, shape_for_elements(dx.size()), append_row_gradient_kernel<T>, dy.data(), size, width, dx.data(),
           dx.size());
  if (drow)
    column_sums(device, dy.dim(0), width, LastRows<T>{dy.data(), size, width}, 1, 1, std::array<T*, 1>{drow.data()});
}

#define HEED_INSTANTIATE(T)                                                              \
  template void rearrange_heads(CudaContext&, const T*, const Shape&, int, bool, T, T*); \
  template void mean_over_heads_forward(CudaContext&, Tensor<T>, int, Tensor<T>);        \
  template void mean_over_heads_backward(CudaContext&, Tensor<T>, int, Tensor<T>);       \
  template void append_row_forward(CudaContext&, Tensor<T>, Tensor<T>, Tensor<T>);       \
  template void append_row_backward(CudaContext&, Tensor<T>, Tensor<T>, Tensor<T>);
HEED_INSTANTIATE(float)
HEED_INSTANTIATE(double)
#undef HEED_INSTANTIATE

}  // namespace heed
