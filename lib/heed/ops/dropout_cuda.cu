#include "heed/ops/dropout.h"

#include "heed/ops/dropout_cuda-inl.h"
#include "heed/tensor/cuda_language.h"

namespace heed {
namespace {

/// Computes y = dropout(x) or, with `add`, y += dropout(x).
template <class T>
__global__ void dropout_kernel(const T* x, DropoutMask<T> mask, bool add, T* y, std::int64_t n) {
  for_each_element(n, [&](std::int64_t i) {
    const T value = drop(x[i], mask, i);
    y[i] = add ? y[i] + value : value;
  });
}

}  // namespace

template <class T>
void dropout_forward(CudaContext& device, Tensor<T> x, DropoutMask<T> mask, Tensor<T> y) {
  launch(device, shape_for_elements(x.size()), dropout_kernel<T>, x.data(), mask, false, y.data(), x.size());
}

template <class T>
void dropout_backward(CudaContext& device, Tensor<T> dy, DropoutMask<T> mask, Tensor<T> dx) {
  launch(device, shape_for_elements(dy.size()), dropout_kernel<T>, dy.data(), mask, true, dx.data(), dy.size());
}

template void dropout_forward(CudaContext&, Tensor<float>, DropoutMask<float>, Tensor<float>);
template void dropout_forward(CudaContext&, Tensor<double>, DropoutMask<double>, Tensor<double>);
template void dropout_backward(CudaContext&, Tensor<float>, DropoutMask<float>, Tensor<float>);
template void dropout_backward(CudaContext&, Tensor<double>, DropoutMask<double>, Tensor<double>);

}  // namespace heed
