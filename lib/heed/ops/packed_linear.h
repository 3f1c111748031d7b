// Products of inference with packed weights, on a CPU: y = x W^T + b, with a weight W [O, I] and a bias b [O].
//
// The weights never change, and a translated line must not change with the lines beside it. W is therefore packed once,
// in the order in which a kernel reads it (PackedWeight), and the kernels compute each row by itself: gemm_rows() in
// float32, gemm_bfloat16() or gemm_int8() at lower precision. (Without packed parameters, W is packed in every call.)
//
// An example, with panels of two rows (16 in float32):
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

#include "heed/autograd/packed_parameters.h"
#include "heed/ops/gemm/gemm_bfloat16.h"
#include "heed/ops/gemm/gemm_int8.h"
#include "heed/ops/gemm/gemm_rows.h"
#include "heed/ops/linear.h"
#include "heed/tensor/context.h"

namespace heed {

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
  /// `device`. `parameters`, if not null, may read the weight from where it is stored. The packed weight is in memory
  /// of `arena`.
  static PackedWeight pack(const CpuContext& device, const PackedParameters<T>* parameters, Tensor<T> weight,
                           Tensor<T> bias, std::span<const std::int32_t> selected, Arena& arena);
};

/// The input x [N, I] of linear layers in inference. The constructor rounds and lays out the rows of x for the
/// precision of the device, once for products with any number of weights. A row of a product does not depend on the
/// other rows of x, bit for bit, in any precision. Packed weights are stored in `packed`, if it is not null. The object
/// is valid as long as x and the memory that it takes from the device's arena.
template <class T>
class LinearInput {
 public:
  LinearInput(CpuContext& device, PackedParameters<T>* packed, Tensor<T> x);

  /// Computes y = f(x W^T + b). Shapes: weight [O, I], bias [O] or absent -> y [N, O].
  void multiply(Tensor<T> weight, Tensor<T> bias, Activation activation, Tensor<T> y) const;
  /// Computes y = x W^T + b with the n rows of a packed weight. Shapes: y [N, n].
  void multiply(const PackedWeight<T>& weight, Tensor<T> y) const { multiply(weight, 0, weight.n, y); }
  /// Computes y = x W^T + b with the rows begin ... end - 1 of a packed weight, which has n rows of k numbers. `begin`
  /// must be a multiple of kColumnBlock; `end` must be such a multiple too, or n. Shapes: x [N, k], y [N, end - begin].
  void multiply(const PackedWeight<T>& weight, std::int64_t begin, std::int64_t end, Tensor<T> y) const;

  /// Returns all rows of a weight [O, I] and the bias, [O] or absent, packed for multiply(). The packed weight is valid
  /// as long as the packed parameters or, without packed parameters, as long as the memory of the arena.
  PackedWeight<T> packed_weight(Tensor<T> weight, Tensor<T> bias) const;

 private:
  /// Calls product(begin, end) for ranges that together cover the n columns of y. Each range begins at a multiple of
  /// kColumnBlock. The threads of the device's team share the ranges; without a team, one call computes all columns.
  template <class Product>
  void for_columns(std::int64_t n, std::int64_t k, Product product) const;

  CpuContext& device_;
  PackedParameters<T>* packed_;
  PackedForm form_;               ///< the form of packed weights, which also decides the form of x
  Tensor<T> x_;                   ///< x in float32; for PackedForm::rounded a copy that is rounded to bfloat16
  Bfloat16LeftOperand bfloat16_;  ///< x in tiles, for PackedForm::bfloat16
  Int8Activations int8_;          ///< x as 8-bit integers, for PackedForm::int8
};

}  // namespace heed
