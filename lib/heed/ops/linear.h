#pragma once

#include "heed/autograd/graph.h"
#include "heed/ops/gemm/gemm_bfloat16.h"
#include "heed/ops/gemm/gemm_int8.h"
#include "heed/ops/gemm/gemm_rows.h"

namespace heed {

/// y = f(z): none z; relu max(0, z); gelu z Phi(z) with the normal distribution's Phi (Hendrycks and Gimpel 2016, exact
/// form); swish z sigmoid(z) (Ramachandran et al. 2017).
enum class Activation { none, relu, gelu, swish };

/// y = f(x W^T + b).
///
/// Shapes: x [N, I], weight [O, I], bias [O] or absent -> y [N, O].
/// Without a tape (inference) a row of y does not depend on the other rows, bit for bit, in any precision: a translated
/// line must not change with its neighbours.
/// Kept for the way back: x; for relu y, for gelu and swish z = x W^T + b.
/// Backward: dz = dy f'(z), dx += dz W, dW += dz^T x, db += sum of dz over rows.
template <class T>
Variable<T> linear(Graph<T>& graph, const Variable<T>& x, const Variable<T>& weight, const Variable<T>& bias,
                   Activation activation = Activation::none);

/// y = f(x W^T + b); where `before` is present it receives z = x W^T + b.
template <class T>
void linear_forward(CpuContext& device, Tensor<T> x, Tensor<T> weight, Tensor<T> bias, Activation activation,
                    Tensor<T> before, Tensor<T> y);

/// y = f(x W^T + b) in float32 arithmetic, W [columns of y, columns of x] in panels. A row's bits do not depend on the
/// other rows.
template <class T>
void linear_rows(Tensor<T> x, Panels<T> weight, Tensor<T> bias, Activation activation, Tensor<T> y);
/// The same with both sides rounded to bfloat16, or to 8 bits.
void linear_rows(Arena& scratch, Tensor<float> x, Bfloat16Tiles weight, Tensor<float> bias, Activation activation,
                 Tensor<float> y);
void linear_rows(Arena& scratch, Tensor<float> x, Int8Weight weight, Tensor<float> bias, Activation activation,
                 Tensor<float> y);

/// Adds to dx, dweight and dbias, each where present. `kept` is y for relu, z for gelu and swish, unused for none.
template <class T>
void linear_backward(CpuContext& device, Tensor<T> x, Tensor<T> weight, Activation activation, Tensor<T> kept,
                     Tensor<T> dy, Tensor<T> dx, Tensor<T> dweight, Tensor<T> dbias);

}  // namespace heed
