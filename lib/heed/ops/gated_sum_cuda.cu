#include "heed/ops/gated_sum.h"

#include "heed/ops/activation_cuda-inl.h"
#include "heed/tensor/cuda_language.h"

namespace heed {
namespace {

template <class T>
__global__ void gated_sum_kernel(const T* a, const T* x, const T* b, const T* z, T* y, std::int64_t n) {
  for_each_element(n, [&](std::int64_t i) { y[i] = sigmoid(a[i]) * x[i] + sigmoid(b[i]) * z[i]; });
}

template <class T>
__global__ void gated_gradients_kernel(const T* a, const T* x, const T* dy, T* da, T* dx, std::int64_t n) {
  for_each_element(n, [&](std::int64_t i) {
    const T gate = sigmoid(a[i]), g = dy[i] * gate;
    if (dx) dx[i] += g;
    if (da) da[i] += g * x[i] * (1 - gate);
  });
}

}  // namespace

template <class T>
void gated_sum_forward(CudaContext& device, Tensor<T> a, Tensor<T> x, Tensor<T> b, Tensor<T> z, Tensor<T> y) {
  launch(device, shape_for_elements(y.size()), gated_sum_kernel<T>, a.data(), x.data(), b.data(), z.data(), y.data(),
         y.size());
}

template <class T>
void gated_sum_backward(CudaContext& device, Tensor<T> a, Tensor<T> x, Tensor<T> dy, Tensor<T> da, Tensor<T> dx) {
  launch(device, shape_for_elements(dy.size()), gated_gradients_kernel<T>, a.data(), x.data(), dy.data(), da.data(),
         dx.data(), dy.size());
}

#define HEED_INSTANTIATE(T)                                                                             \
  template void gated_sum_forward(CudaContext&, Tensor<T>, Tensor<T>, Tensor<T>, Tensor<T>, Tensor<T>); \
  template void gated_sum_backward(CudaContext&, Tensor<T>, Tensor<T>, Tensor<T>, Tensor<T>, Tensor<T>);
HEED_INSTANTIATE(float)
HEED_INSTANTIATE(double)
#undef HEED_INSTANTIATE

}  // namespace heed
