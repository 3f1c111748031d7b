#include "heed/ops/gated_unit.h"

#include "heed/ops/activation_cuda-inl.h"
#include "heed/tensor/cuda_language.h"

namespace heed {
namespace {

/// A thread has an element of y [N, columns]. The result goes to `rounded` where that is not null, otherwise to y.
template <class T>
__global__ void gated_unit_kernel(const T* x, Activation activation, T* y, Bfloat16* rounded, std::int64_t n,
                                  std::int64_t columns) {
  for_each_element(n, [&](std::int64_t i) {
    const T* const gate = x + i / columns * 2 * columns + i % columns;
    const T result = activate(activation, gate[0]) * gate[columns];
    if (rounded)
      rounded[i] = to_bfloat16(static_cast<float>(result));
    else
      y[i] = result;
  });
}

/// A thread has an element of dy [N, columns], which is in `dy_rounded` where that is not null.
template <class T>
__global__ void gated_unit_gradient_kernel(const T* x, Activation activation, const T* dy, const Bfloat16* dy_rounded,
                                           T* dx, bool adds, std::int64_t n, std::int64_t columns) {
  for_each_element(n, [&](std::int64_t i) {
    const std::int64_t gate = i / columns * 2 * columns + i % columns, value = gate + columns;
    const T arrived = dy_rounded ? static_cast<T>(from_bfloat16(dy_rounded[i])) : dy[i];
    const T to_gate = arrived * x[value] * activation_derivative(activation, x[gate]);
    const T to_value = arrived * activate(activation, x[gate]);
    dx[gate] = adds ? dx[gate] + to_gate : to_gate;
    dx[value] = adds ? dx[value] + to_value : to_value;
  });
}

}  // namespace

template <class T>
void gated_unit_forward(CudaContext& device, Tensor<T> x, Activation activation, MaybeRounded<T> y) {
  const std::int64_t n = y.rows() * y.columns();
  launch(device, shape_for_elements(n), gated_unit_kernel<T>, x.data(), activation, y.full.data(), y.rounded.data(), n,
         y.columns());
}

template <class T>
void gated_unit_backward(CudaContext& device, Tensor<T> x, Activation activation, MaybeRounded<T> dy, Tensor<T> dx,
                         bool adds) {
  const std::int64_t n = dy.rows() * dy.columns();
  launch(device, shape_for_elements(n), gated_unit_gradient_kernel<T>, x.data(), activation, dy.full.data(),
         dy.rounded.data(), dx.data(), adds, n, dy.columns());
}

#define HEED_INSTANTIATE(T)                                                               \
  template void gated_unit_forward(CudaContext&, Tensor<T>, Activation, MaybeRounded<T>); \
  template void gated_unit_backward(CudaContext&, Tensor<T>, Activation, MaybeRounded<T>, Tensor<T>, bool);
HEED_INSTANTIATE(float)
HEED_INSTANTIATE(double)
#undef HEED_INSTANTIATE

}  // namespace heed
