// The linear layer y = f(x W^T + b), with an activation function f, a weight W [O, I] and a bias b [O].
//
// The op linear() computes the layer in two ways:
//   - In training (linear_forward, linear_backward) the weights change after every batch. A matrix product gemm() reads
//     W where it is stored.
//   - In inference (LinearInput) the weights never change, and a translated line must not change with the lines beside
//     it. W is therefore packed once, in the order in which a kernel reads it (PackedWeight), and the kernels compute
//     each row by itself: gemm_rows() in float32, gemm_bfloat16() or gemm_int8() at lower precision. (A graph without
//     packed parameters packs W in every call.)
//
// An example of the inference path, with panels of two rows (16 in float32) and without an activation function:
//
//   x = (1, 2)     W = 1 0     b = (0, 0, 1)     packed weight: panel 0 = 1 0     panel 1 = 1 0
//                      0 1                                                0 1               1 0
//                      1 1
//
// A panel holds rows of W as columns; a zero row fills panel 1 up.
//   Panel 0 gives y[0..1] = (0, 0) + 1 * (1, 0) + 2 * (0, 1) = (1, 2).
//   Panel 1 gives (1, 0) + 1 * (1, 0) + 2 * (1, 0) = (4, 0), of which only y[2] = 4 is stored.
// A LinearInput rounds and lays out x once for several products: the output layer of a beam search multiplies the same
// x by one block of columns after the other. With a shortlist of the vocabulary, only some rows of W are packed: the
// rows 2 and 0 give y = (4, 1), the same bits as in the whole product.
//
// Words: a packed weight is W in the form that the kernels of a precision read: panels (float32), tiles (bfloat16), or
// panels of bytes with scales (int8). A piece is a range of rows of W (columns of y) that a thread of a ThreadTeam
// packs or computes on its own. A matrix is rounded where its numbers are stored as bfloat16.
#pragma once

#include <cstdint>
#include <span>
#include <type_traits>

#include "heed/autograd/graph.h"
#include "heed/ops/gemm/gemm_bfloat16.h"
#include "heed/ops/gemm/gemm_int8.h"
#include "heed/ops/gemm/gemm_rows.h"
#include "heed/ops/gemm/maybe_rounded.h"

namespace heed {

/// The activation functions y = f(z). `none`: y = z. `relu`: y = max(0, z). `gelu`: y = z Phi(z), where Phi is the
/// standard normal distribution function (Hendrycks and Gimpel 2016, exact form). `swish`: y = z sigmoid(z)
/// (Ramachandran et al. 2017). `tanh`: y = tanh z.
enum class Activation { none, relu, gelu, swish, tanh };

/// Which ops will read a result: `any` op, or only linear(). In training, a result that only linear() reads is stored
/// as bfloat16 (Variable::rounded) where linear() would round it to bfloat16 anyway.
enum class ResultUse { any, linear };

/// Tells whether a result that is used in this way is stored as bfloat16.
template <class T>
bool stores_rounded(Graph<T>& graph, ResultUse use) {
  return use == ResultUse::linear && graph.recording() && std::is_same_v<T, float> && takes_bfloat16(graph.device());
}

/// Computes a linear layer: y = f(z) with z = x W^T + b, where f is the activation function.
///
/// Shapes: x [N, I], weight [O, I], bias [O] or absent -> y [N, O].
/// In inference (a graph that does not record) a row of y does not depend on the other rows, bit for bit, in any
/// precision: a translated line must not change with the lines beside it.
/// `use` says which ops will read y. x may be stored as bfloat16 (Variable::rounded).
/// Saved for the backward pass: x; and y for relu and tanh, or z for gelu and swish. No copy of x and y is made: the
/// tensors stay as they are stored, in float32 or bfloat16. Backward: dz = dy f'(z), dx += dz W, dW += dz^T x, db +=
/// sum of dz over rows. dz overwrites dy.
template <class T>
Variable<T> linear(Graph<T>& graph, const Variable<T>& x, const Variable<T>& weight, const Variable<T>& bias,
                   Activation activation = Activation::none, ResultUse use = ResultUse::any);

/// Computes y = f(z) with z = x W^T + b for training. Where the tensor `before` is not empty, z is stored in `before`.
template <class T>
void linear_forward(CpuContext& device, MaybeRounded<T> x, Tensor<T> weight, Tensor<T> bias, Activation activation,
                    Tensor<T> before, MaybeRounded<T> y);

/// Threads may share the packing of a weight in pieces (ranges of rows), and a product in pieces (ranges of columns). A
/// piece begins at a multiple of this number in every precision.
constexpr std::int64_t kColumnBlock = 32;
static_assert(kColumnBlock % kInt8Columns == 0 && kColumnBlock % kPanelRows<float> == 0);

/// All or some rows of a weight [O, I], and their elements of the bias, packed for products with the input x of a layer
/// (LinearInput). An element of a product has the same bits whether all rows or only some rows of the weight were
/// packed.
template <class T>
struct PackedWeight {
  const T* packed = nullptr;  ///< the packed rows, in the form that the device's precision needs (see PackedForm)
  Tensor<T> bias;             ///< [n], or empty where the layer has no bias
  std::int64_t n = 0, k = 0;  ///< the number of packed rows, and the number of elements in each

  /// Packs the rows `selected` of a weight [O, I], and these elements of the bias ([O] or absent), for the precision of
  /// the graph's device. The packed weight is in memory of `arena`.
  static PackedWeight pack(Graph<T>& graph, Tensor<T> weight, Tensor<T> bias, std::span<const std::int32_t> selected,
                           Arena& arena);
};

/// The input x [N, I] of linear layers in inference. The constructor rounds and lays out the rows of x for the
/// precision of the graph's device, once for products with any number of weights. A row of a product does not depend on
/// the other rows of x, bit for bit, in any precision. Packed weights are stored with the graph's packed parameters, if
/// the graph has any. The object is valid as long as x and the memory that it takes from the graph's arena.
template <class T>
class LinearInput {
 public:
  LinearInput(Graph<T>& graph, Tensor<T> x);

  /// Computes y = f(x W^T + b). Shapes: weight [O, I], bias [O] or absent -> y [N, O].
  void multiply(Tensor<T> weight, Tensor<T> bias, Activation activation, Tensor<T> y) const;
  /// Computes y = x W^T + b with the n rows of a packed weight. Shapes: y [N, n].
  void multiply(const PackedWeight<T>& weight, Tensor<T> y) const { multiply(weight, 0, weight.n, y); }
  /// Computes y = x W^T + b with the rows begin ... end - 1 of a packed weight, which has n rows of k numbers. `begin`
  /// must be a multiple of kColumnBlock; `end` must be such a multiple too, or n. Shapes: x [N, k], y [N, end - begin].
  void multiply(const PackedWeight<T>& weight, std::int64_t begin, std::int64_t end, Tensor<T> y) const;

  /// Returns all rows of a weight [O, I] and the bias, [O] or absent, packed for multiply(). The packed weight is valid
  /// as long as the graph's packed parameters or, in a graph without packed parameters, as long as the memory of the
  /// arena.
  PackedWeight<T> packed_weight(Tensor<T> weight, Tensor<T> bias) const;

 private:
  /// Calls product(begin, end) for ranges that together cover the n columns of y. Each range begins at a multiple of
  /// kColumnBlock. The threads of the device's team share the ranges; without a team, one call computes all columns.
  template <class Product>
  void for_columns(std::int64_t n, std::int64_t k, Product product) const;

  Graph<T>& graph_;
  PackedForm form_;               ///< the form of packed weights, which also decides the form of x
  Tensor<T> x_;                   ///< x in float32; for PackedForm::rounded a copy that is rounded to bfloat16
  Bfloat16LeftOperand bfloat16_;  ///< x in tiles, for PackedForm::bfloat16
  Int8Activations int8_;          ///< x as 8-bit integers, for PackedForm::int8
};

/// Adds the bias b [O] (or nothing, where the tensor is empty) to each row of y [N, O] and applies the activation
/// function f, in place: y = f(y + b).
template <class T>
void add_bias_activate(Tensor<T> y, Tensor<T> bias, Activation activation);

/// Computes the gradients of a linear layer from the gradient dy of y (see linear() for the formulas). Adds to dweight
/// and dbias; adds to dx where `adds_to_dx` is true, otherwise overwrites dx. An empty gradient tensor is skipped.
/// `kept` is y for relu and tanh, and z = x W^T + b for gelu and swish; it is not read without an activation function.
/// dz overwrites dy.
template <class T>
void linear_backward(CpuContext& device, MaybeRounded<T> x, Tensor<T> weight, Activation activation,
                     MaybeRounded<T> kept, Tensor<T> dy, Tensor<T> dx, bool adds_to_dx, Tensor<T> dweight,
                     Tensor<T> dbias);

}  // namespace heed
