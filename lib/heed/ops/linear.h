#pragma once

#include <cstdint>
#include <span>

#include "heed/autograd/graph.h"
#include "heed/ops/gemm/gemm_bfloat16.h"
#include "heed/ops/gemm/gemm_int8.h"
#include "heed/ops/gemm/gemm_rows.h"
#include "heed/ops/gemm/maybe_rounded.h"

namespace heed {

/// y = f(z): none z; relu max(0, z); gelu z Phi(z) with the normal distribution's Phi (Hendrycks and Gimpel 2016, exact
/// form); swish z sigmoid(z) (Ramachandran et al. 2017).
enum class Activation { none, relu, gelu, swish };

/// What a result is for. One for linear() alone is kept rounded where that rounds it (Variable::rounded).
enum class ResultUse { any, linear };

/// y = f(x W^T + b).
///
/// Shapes: x [N, I], weight [O, I], bias [O] or absent -> y [N, O].
/// Without a tape (inference) a row of y does not depend on the other rows, bit for bit, in any precision: a translated
/// line must not change with its neighbours.
/// `use`: what y is for. x may be a result that is kept rounded.
/// Kept for the way back: x; for relu y, for gelu and swish z = x W^T + b. Rounded where x or y is.
/// Backward: dz = dy f'(z), dx += dz W, dW += dz^T x, db += sum of dz over rows. dz takes dy's place.
template <class T>
Variable<T> linear(Graph<T>& graph, const Variable<T>& x, const Variable<T>& weight, const Variable<T>& bias,
                   Activation activation = Activation::none, ResultUse use = ResultUse::any);

/// y = f(x W^T + b); where `before` is present it receives z = x W^T + b.
template <class T>
void linear_forward(CpuContext& device, MaybeRounded<T> x, Tensor<T> weight, Tensor<T> bias, Activation activation,
                    Tensor<T> before, MaybeRounded<T> y);

/// Rows of a weight may be packed in pieces, and columns of a product made in pieces, that begin at multiples of this.
constexpr std::int64_t kColumnBlock = 32;
static_assert(kColumnBlock % kInt8Columns == 0 && kColumnBlock % kPanelRows<float> == 0);

/// All or some rows of a weight [O, I] and of its bias, [O] or absent, packed for LinearInput: an element of a product
/// with some rows has the bits that it has in a product with the whole weight.
template <class T>
struct PackedWeight {
  const T* packed = nullptr;
  Tensor<T> bias;
  std::int64_t n = 0, k = 0;

  /// For the precision of the graph's device, in memory of `arena`.
  static PackedWeight pack(Graph<T>& graph, Tensor<T> weight, Tensor<T> bias, std::span<const std::int32_t> selected,
                           Arena& arena);
};

/// The input x of linear layers in inference: its rows are rounded and laid out once, in the precision of the graph's
/// device, for products with any number of weights. A row of a product does not depend on the other rows, bit for bit,
/// in any precision. What weights are packed to is kept with the graph's packed parameters where it has them. Lives as
/// long as x and the memory taken from the graph's arena.
template <class T>
class LinearInput {
 public:
  LinearInput(Graph<T>& graph, Tensor<T> x);

  /// y = f(x W^T + b). Shapes: weight [O, I], bias [O] or absent -> y [N, O].
  void multiply(Tensor<T> weight, Tensor<T> bias, Activation activation, Tensor<T> y) const;
  /// y = x W^T + b with n rows of a weight. Shapes: y [N, n].
  void multiply(const PackedWeight<T>& weight, Tensor<T> y) const { multiply(weight, 0, weight.n, y); }
  /// The same with its rows from `begin` (a multiple of kColumnBlock) to before `end`. Shapes: y [N, end - begin].
  void multiply(const PackedWeight<T>& weight, std::int64_t begin, std::int64_t end, Tensor<T> y) const;

  /// All rows of a weight [O, I] and its bias, [O] or absent, for such products. Lives as long as the graph's packed
  /// parameters, or, without these, as what its arena holds.
  PackedWeight<T> packed_weight(Tensor<T> weight, Tensor<T> bias) const;

 private:
  /// Calls product(begin, end) for ranges of n columns that begin at multiples of kColumnBlock: one, or shared by the
  /// device's team.
  template <class Product>
  void for_columns(std::int64_t n, std::int64_t k, Product product) const;

  Graph<T>& graph_;
  PackedForm form_;
  Tensor<T> x_;
  Bfloat16LeftOperand bfloat16_;
  Int8Activations int8_;
};

/// y = f(y + b) in place.
template <class T>
void add_bias_activate(Tensor<T> y, Tensor<T> bias, Activation activation);

/// Adds to dweight and dbias, and to dx where `adds_to_dx`; otherwise writes it. Each where present. `kept` is y for
/// relu, z for gelu and swish, unused for none. dy becomes dz.
template <class T>
void linear_backward(CpuContext& device, MaybeRounded<T> x, Tensor<T> weight, Activation activation,
                     MaybeRounded<T> kept, Tensor<T> dy, Tensor<T> dx, bool adds_to_dx, Tensor<T> dweight,
                     Tensor<T> dbias);

}  // namespace heed
