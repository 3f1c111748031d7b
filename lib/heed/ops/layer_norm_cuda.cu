#include "heed/ops/layer_norm.h"

#include "heed/ops/row_norm_cuda-inl.h"
#include "heed/tensor/cuda_language.h"

namespace heed {
namespace {

template <class T>
__global__ void row_norm_kernel(RowNorm kind, const T* x, const T* scale, const T* bias, T epsilon, T* y,
                                Bfloat16* rounded, T* statistics, std::int64_t columns) {
  T sum = 0;
  for_each_of_row(columns, [&](std::int64_t i) { sum += norm_summand(kind, x[i]); });
  normalise_row(kind, x, sum, scale, bias, epsilon, y, rounded, statistics, columns);
}

template <class T>
__global__ void row_norm_gradient_kernel(RowNorm kind, const T* x, const T* scale, const T* statistics, const T* dy,
                                         T* dx, std::int64_t columns) {
  normalise_row_backward(kind, x, scale, statistics, dy, columns, [&](std::int64_t i, T g) { dx[i] += g; });
}

}  // namespace

template <class T>
void row_norm_forward(CudaContext& device, RowNorm kind, Tensor<T> x, Tensor<T> scale, Tensor<T> bias, double epsilon,
                      MaybeRounded<T> y, Tensor<T> statistics) {
  launch(device, shape_for_rows<T>(x.rows(), x.columns()), row_norm_kernel<T>, kind, x.data(), scale.data(),
         bias.data(), static_cast<T>(epsilon), y.full.data(), y.rounded.data(), statistics.data(), x.columns());
}

template <class T>
void row_norm_backward(CudaContext& device, RowNorm kind, Tensor<T> x, Tensor<T> scale, Tensor<T> statistics,
                       Tensor<T> dy, Tensor<T> dx, Tensor<T> dscale, Tensor<T> dbias) {
  if (dx)
    launch(device, shape_for_rows<T>(x.rows(), x.columns()), row_norm_gradient_kernel<T>, kind, x.data(), scale.data(),
           statistics.data(), dy.data(), dx.data(), x.columns());
  add_row_norm_gradients(device, x, statistics, dy, dscale, dbias);
}

#define HEED_INSTANTIATE(T)                                                                                       \
  template void row_norm_forward(CudaContext&, RowNorm, Tensor<T>, Tensor<T>, Tensor<T>, double, MaybeRounded<T>, \
                                 Tensor<T>);                                                                      \
  template void row_norm_backward(CudaContext&, RowNorm, Tensor<T>, Tensor<T>, Tensor<T>, Tensor<T>, Tensor<T>,   \
                                  Tensor<T>, Tensor<T>);
HEED_INSTANTIATE(float)
HEED_INSTANTIATE(double)
#undef HEED_INSTANTIATE

}  // namespace heed
