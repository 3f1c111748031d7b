#include "heed/ops/softmax.h"

#include <cmath>

#include "heed/ops/softmax_cuda-inl.h"
#include "heed/tensor/cuda_language.h"

namespace heed {
namespace {

template <class T>
__global__ void softmax_kernel(const T* x, T* y, std::int64_t columns) {
  softmax_row(x, y, columns);
}

template <class T>
__global__ void softmax_gradient_kernel(const T* y, const T* dy, T* dx, std::int64_t columns) {
  T sum = 0;
  for_each_of_row(columns, [&](std::int64_t i) { sum += y[i] * dy[i]; });
  sum = block_sum(sum, shared_memory<T>());
  for_each_of_row(columns, [&](std::int64_t i) { dx[i] += y[i] * (dy[i] - sum); });
}

template <class T>
__global__ void log_softmax_kernel(const T* x, T* y, std::int64_t columns) {
  T sum = 0;
  const T largest = largest_of_row(x, columns, sum), shift = largest + std::log(sum);
  for_each_of_row(columns, [&](std::int64_t i) { y[i] = x[i] - shift; });
}

template <class T>
__global__ void log_softmax_gradient_kernel(const T* y, const T* dy, T* dx, std::int64_t columns) {
  T sum = 0;
  for_each_of_row(columns, [&](std::int64_t i) { sum += dy[i]; });
  sum = block_sum(sum, shared_memory<T>());
  for_each_of_row(columns, [&](std::int64_t i) { dx[i] += dy[i] - std::exp(y[i]) * sum; });
}

}  // namespace

template <class T>
void softmax_forward(CudaContext& device, Tensor<T> x, Tensor<T> y) {
  launch(device, shape_for_rows<T>(x.rows(), x.columns()), softmax_kernel<T>, x.data(), y.data(), x.columns());
}

template <class T>
void softmax_backward(CudaContext& device, Tensor<T> y, Tensor<T> dy, Tensor<T> dx) {
  launch(device, shape_for_rows<T>(y.rows(), y.columns()), softmax_gradient_kernel<T>, y.data(), dy.data(), dx.data(),
         y.columns());
}

template <class T>
void log_softmax_forward(CudaContext& device, Tensor<T> x, Tensor<T> y) {
  launch(device, shape_for_rows<T>(x.rows(), x.columns()), log_softmax_kernel<T>, x.data(), y.data(), x.columns());
}

template <class T>
void log_softmax_backward(CudaContext& device, Tensor<T> y, Tensor<T> dy, Tensor<T> dx) {
  launch(device, shape_for_rows<T>(y.rows(), y.columns()), log_softmax_gradient_kernel<T>, y.data(), dy.data(),
         dx.data(), y.columns());
}

#define HEED_INSTANTIATE(T)                                                      \
  template void softmax_forward(CudaContext&, Tensor<T>, Tensor<T>);             \
  template void softmax_backward(CudaContext&, Tensor<T>, Tensor<T>, Tensor<T>); \
  template void log_softmax_forward(CudaContext&, Tensor<T>, Tensor<T>);         \
  template void log_softmax_backward(CudaContext&, Tensor<T>, Tensor<T>, Tensor<T>);
HEED_INSTANTIATE(float)
HEED_INSTANTIATE(double)
#undef HEED_INSTANTIATE

}  // namespace heed
