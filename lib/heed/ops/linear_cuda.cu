#include "heed/ops/activation_cuda-inl.h"
#include "heed/ops/column_sum_cuda-inl.h"
#include "heed/ops/gemm/gemm.h"
#include "heed/ops/linear.h"
#include "heed/tensor/cuda_language.h"

namespace heed {
namespace {

/// Adds the bias to each row of z [rows, columns], and computes y = f(z). `before`, where not null, receives z with the
/// bias. The result goes to `y`, which may be z, or rounded to `y_rounded`, where that is not null.
template <class T>
__global__ void bias_activation_kernel(const T* z, const T* bias, Activation activation, T* before, T* y,
                                       Bfloat16* y_rounded, std::int64_t n, std::int64_t columns) {
  for_each_element(n, [&](std::int64_t i) {
    const T sum = bias ? z[i] + bias[i % columns] : z[i];
    if (before) before[i] = sum;
    const T result = activate(activation, sum);
    if (y_rounded)
      y_rounded[i] = to_bfloat16(static_cast<float>(result));
    else
      y[i] = result;
  });
}

/// Computes dz = dy f'(z), written over dy. `kept` is what linear() keeps for the backward pass; it is in
/// `kept_rounded` where that is not null.
template <class T>
__global__ void activation_gradient_kernel(T* dy, const T* kept, const Bfloat16* kept_rounded, Activation activation,
                                           std::int64_t n) {
  for_each_element(n, [&](std::int64_t i) {
    dy[i] *= activation_derivative(activation, kept_rounded ? static_cast<T>(from_bfloat16(kept_rounded[i])) : kept[i]);
  });
}

}  // namespace

template <class T>
void linear_forward(CudaContext& device, MaybeRounded<T> x, Tensor<T> weight, Tensor<T> bias, Activation activation,
                    Tensor<T> before, MaybeRounded<T> y) {
  const ArenaScope scope(device.arena);
  const std::int64_t rows = x.rows(), in = x.columns(), out = weight.dim(0);
  T* const z = y.rounded ? device.arena.tensor<T>({rows, out}).data() : y.full.data();
  x.with_operand(0, false, [&](auto operand) {
    gemm(device, rows, out, in, T(1), operand, GemmOperand<T>{weight.data(), in, true}, T(0), z, out);
  });
  if (bias || activation != Activation::none || before || y.rounded)
    launch(device, shape_for_elements(rows * out), bias_activation_kernel<T>, z, bias.data(), activation, before.data(),
           y.full.data(), y.rounded.data(), rows * out, out);
}

template <class T>
void linear_inference(CudaContext& device, PackedParameters<T>*, Tensor<T> x, Tensor<T> weight, Tensor<T> bias,
                      Activation activation, Tensor<T> y) {
  gemm_rows<T>(device, x.rows(), weight.dim(0), x.columns(), x.data(), weight.data(), y.data());
  if (bias || activation != Activation::none)
    launch(device, shape_for_elements(y.size()), bias_activation_kernel<T>, y.data(), bias.data(), activation, nullptr,
           y.data(), nullptr, y.size(), y.columns());
}

template <class T>
void linear_backward(CudaContext& device, MaybeRounded<T> x, Tensor<T> weight, Activation activation,
                     MaybeRounded<T> kept, Tensor<T> dy, Tensor<T> dx, bool adds_to_dx, Tensor<T> dweight,
                     Tensor<T> dbias) {
  const std::int64_t rows = x.rows(), in = x.columns(), out = weight.dim(0);
  if (activation != Activation::none)
    launch(device, shape_for_elements(rows * out), activation_gradient_kernel<T>, dy.data(), kept.full.data(),
           kept.rounded.data(), activation, rows * out);
  const GemmOperand<T> dz{dy.data(), out};
  if (dx) gemm(device, rows, in, out, T(1), dz, GemmOperand<T>{weight.data(), in}, T(adds_to_dx), dx.data(), in);
  if (dbias) add_column_sums(device, dy, dbias);
  if (dweight)
    x.with_operand(0, false, [&](auto operand) {
      gemm(device, out, in, rows, T(1), GemmOperand<T>{dy.data(), out, true}, operand, T(1), dweight.data(), in);
    });
}

#define HEED_INSTANTIATE(T)                                                                                       \
  template void linear_forward(CudaContext&, MaybeRounded<T>, Tensor<T>, Tensor<T>, Activation, Tensor<T>,        \
                               MaybeRounded<T>);                                                                  \
  template void linear_inference(CudaContext&, PackedParameters<T>*, Tensor<T>, Tensor<T>, Tensor<T>, Activation, \
                                 Tensor<T>);                                                                      \
  template void linear_backward(CudaContext&, MaybeRounded<T>, Tensor<T>, Activation, MaybeRounded<T>, Tensor<T>, \
                                Tensor<T>, bool, Tensor<T>, Tensor<T>);
HEED_INSTANTIATE(float)
HEED_INSTANTIATE(double)
#undef HEED_INSTANTIATE

}  // namespace heed
