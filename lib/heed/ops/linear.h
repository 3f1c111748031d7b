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

/// Rows of x, rounded and laid out once for products with any number of weights, in the precision of the graph's
/// device: inference's way. A row of a product does not depend on the other rows, bit for bit, in any precision. What
/// weights are packed to is kept with the graph's packed parameters where it has them. Lives as long as x and the
/// memory taken from the graph's arena.
template <class T>
class LinearRows {
 public:
  LinearRows(Graph<T>& graph, Tensor<T> x);

  /// y = f(x W^T + b). Shapes: weight [O, I], bias [O] or absent -> y [N, O].
  void multiply(Tensor<T> weight, Tensor<T> bias, Activation activation, Tensor<T> y) const;

 private:
  template <class Pack>
  const T* packed(Tensor<T> weight, std::int64_t size, Pack pack) const;
  /// Calls pack(begin, end, from) for pieces of the rows, which begin at multiples of `step`; `from` is row begin and
  /// what follows.
  template <class Pack>
  void for_rows(const WeightRows<T>& rows, std::int64_t step, Pack pack) const;
  /// Calls product(begin, end) for ranges of the columns of y that begin at multiples of `step`: one, or shared by the
  /// device's team.
  template <class Product>
  void for_columns(Tensor<T> weight, std::int64_t step, Product product) const;
  void multiply_float32(Tensor<T> weight, Tensor<T> bias, Tensor<T> y) const;
  void multiply_bfloat16(Tensor<T> weight, Tensor<T> bias, Tensor<T> y) const;
  void multiply_int8(Tensor<T> weight, Tensor<T> bias, Tensor<T> y) const;

  Graph<T>& graph_;
  Tensor<T> x_;
  Bfloat16Left bfloat16_;
  Int8Rows int8_;
};

/// y = f(y + b) in place.
template <class T>
void add_bias_activate(Tensor<T> y, Tensor<T> bias, Activation activation);

/// Adds to dweight and dbias, and to dx where `adds_to_dx`; otherwise writes it. Each where present. `kept` is y for
/// relu, z for gelu and swish, unused for none.
template <class T>
void linear_backward(CpuContext& device, Tensor<T> x, Tensor<T> weight, Activation activation, Tensor<T> kept,
                     Tensor<T> dy, Tensor<T> dx, bool adds_to_dx, Tensor<T> dweight, Tensor<T> dbias);

}  // namespace heed
