// The linear layer y = f(x W^T + b), with an activation function f, a weight W [O, I] and a bias b [O].
//
// The op linear() computes the layer in two ways:
//   - In training (linear_forward, linear_backward) the weights change after every batch. A matrix product gemm() reads
//     W where it is stored.
//   - In inference (linear_inference) the weights never change, and a translated line must not change with the lines
//     beside it: see packed_linear.h.
#pragma once

#include <cstdint>

#include "heed/ops/rounded_result.h"

namespace heed {

/// The activation functions y = f(z). `none`: y = z. `relu`: y = max(0, z). `gelu`: y = z Phi(z), where Phi is the
/// standard normal distribution function (Hendrycks and Gimpel 2016, exact form). `swish`: y = z sigmoid(z)
/// (Ramachandran et al. 2017). `tanh`: y = tanh z.
enum class Activation { none, relu, gelu, swish, tanh };

/// Computes a linear layer: y = f(z) with z = x W^T + b, where f is the activation function.
///
/// Shapes: x [N, I], weight [O, I], bias [O] or absent -> y [N, O].
/// In inference (a graph that does not record) a row of y does not depend on the other rows, bit for bit, in any
/// precision: a translated line must not change with the lines beside it.
/// `use` says which ops will read y. x may be stored as bfloat16 (Variable::rounded).
/// Saved for the backward pass: x; and y for relu and tanh, or z for gelu and swish. No copy of x and y is made: the
/// tensors stay as they are stored, in float32 or bfloat16. But a GPU whose products multiply bfloat16 rounds x once
/// for the products of both passes. y and the gradients of x and y may be stored as bfloat16 alone (see
/// rounded_result.h). Backward: dz = dy f'(z), dx += dz W, dW += dz^T x, db += sum of dz over rows. dz may overwrite
/// dy.
template <class T>
Variable<T> linear(Graph<T>& graph, const Variable<T>& x, const Variable<T>& weight, const Variable<T>& bias,
                   Activation activation = Activation::none, ResultUse use = ResultUse::any);

/// Returns x in the form in which the matrix products of a training read it. On a GPU with bfloat16 products, the
/// result has a copy of x that is rounded to bfloat16, in the device's arena. Otherwise the result is x itself, because
/// the products of a CPU round their operands in registers.
template <class T>
MaybeRounded<T> operand_of_products(CpuContext&, MaybeRounded<T> x) {
  return x;
}
template <class T>
MaybeRounded<T> operand_of_products(CudaContext& device, MaybeRounded<T> x);

/// Computes y = f(z) with z = x W^T + b for training. Stores z in `before`, unless that tensor is empty. `weight` and
/// `bias` must be present in full precision; if they also have copies that are rounded to bfloat16, a GPU may read the
/// copies.
template <class T>
void linear_forward(CpuContext& device, MaybeRounded<T> x, MaybeRounded<T> weight, MaybeRounded<T> bias,
                    Activation activation, Tensor<T> before, MaybeRounded<T> y);
template <class T>
void linear_forward(CudaContext& device, MaybeRounded<T> x, MaybeRounded<T> weight, MaybeRounded<T> bias,
                    Activation activation, Tensor<T> before, MaybeRounded<T> y);

/// Computes y = f(x W^T + b) for inference. `packed`, if not null, keeps the packed weight. On a GPU whose products
/// multiply bfloat16, x and y may be stored as bfloat16 alone.
template <class T>
void linear_inference(CpuContext& device, PackedParameters<T>* packed, MaybeRounded<T> x, Tensor<T> weight,
                      Tensor<T> bias, Activation activation, MaybeRounded<T> y);
template <class T>
void linear_inference(CudaContext& device, PackedParameters<T>* packed, MaybeRounded<T> x, Tensor<T> weight,
                      Tensor<T> bias, Activation activation, MaybeRounded<T> y);

/// Adds the bias b [O] (or nothing, where the tensor is empty) to each row of y [N, O] and applies the activation
/// function f, in place: y = f(y + b).
template <class T>
void add_bias_activate(Tensor<T> y, Tensor<T> bias, Activation activation);

/// Computes the gradients of a linear layer from the gradient dy of y (see linear() for the formulas). Adds to dweight
/// and dbias; adds to dx where `adds_to_dx` is true, otherwise overwrites dx. An empty gradient tensor is skipped.
/// `kept` is y for relu and tanh, and z = x W^T + b for gelu and swish; it is not read without an activation function.
/// dz may overwrite dy. On a GPU with bfloat16 products dy may be stored as bfloat16, and dx too where it is
/// overwritten.
template <class T>
void linear_backward(CpuContext& device, MaybeRounded<T> x, MaybeRounded<T> weight, Activation activation,
                     MaybeRounded<T> kept, MaybeRounded<T> dy, MaybeRounded<T> dx, bool adds_to_dx, Tensor<T> dweight,
                     Tensor<T> dbias);
template <class T>
void linear_backward(CudaContext& device, MaybeRounded<T> x, MaybeRounded<T> weight, Activation activation,
                     MaybeRounded<T> kept, MaybeRounded<T> dy, MaybeRounded<T> dx, bool adds_to_dx, Tensor<T> dweight,
                     Tensor<T> dbias);

}  // namespace heed
