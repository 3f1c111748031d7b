#pragma once

#include <type_traits>

#include "heed/ops/gemm/gemm.h"
#include "heed/tensor/tensor.h"

namespace heed {

/// A matrix that is stored in full precision, rounded to bfloat16, or in both ways. The rounded form is allowed only
/// where takes_bfloat16(device) is true, and products read it where it is there.
template <class T>
struct MaybeRounded {
  Tensor<T> full;                 ///< the matrix in full precision; may be empty where `rounded` is set
  Tensor<Bfloat16> rounded = {};  ///< the matrix as bfloat16; empty where the matrix is stored in full precision alone

  std::int64_t rows() const { return rounded ? rounded.rows() : full.rows(); }
  std::int64_t columns() const { return rounded ? rounded.columns() : full.columns(); }

  /// Calls product(operand), where `operand` is a GemmOperand of the rows from `begin` on, in the form in which the
  /// matrix is stored. With `transposed`, the operand stands for the transpose of these rows.
  template <class Product>
  void with_operand(std::int64_t begin, bool transposed, Product product) const {
    if constexpr (std::is_same_v<T, float>)
      if (rounded) return product(GemmOperand<Bfloat16>{rounded.row(begin), columns(), transposed});
    product(GemmOperand<T>{full.row(begin), columns(), transposed});
  }
};

/// Returns memory of the device's arena for the rounded form of a matrix, where products multiply bfloat16; elsewhere
/// an empty tensor.
template <class T, class Context>
Tensor<Bfloat16> rounded_memory(Context& device, const Shape& shape) {
  if (!std::is_same_v<T, float> || !takes_bfloat16(device)) return {};
  return device.arena.template tensor<Bfloat16>(shape);
}

}  // namespace heed
