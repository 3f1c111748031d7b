#pragma once

#include <type_traits>

#include "heed/ops/gemm/gemm.h"
#include "heed/tensor/tensor.h"

namespace heed {

/// A matrix in full, or rounded to bfloat16, which only takes_bfloat16(device) allows.
template <class T>
struct MaybeRounded {
  Tensor<T> full;
  Tensor<Bfloat16> rounded = {};

  std::int64_t rows() const { return rounded ? rounded.rows() : full.rows(); }
  std::int64_t columns() const { return rounded ? rounded.columns() : full.columns(); }

  /// Calls product(operand) with the rows from `begin` on as a side of a product, as they are or transposed.
  template <class Product>
  void with_operand(std::int64_t begin, bool transposed, Product product) const {
    if constexpr (std::is_same_v<T, float>)
      if (rounded) return product(GemmOperand<Bfloat16>{rounded.row(begin), columns(), transposed});
    product(GemmOperand<T>{full.row(begin), columns(), transposed});
  }
};

}  // namespace heed
