#pragma once

#include <cstring>

#include "heed/tensor/tensor.h"

namespace heed {

/// The gradient of a variable, which ops add to on the way back. Its memory is filled by the first of them: a fill with
/// zeros long before would send all gradients through the cache once more. Copying copies the view.
template <class T>
class Gradient {
 public:
  /// Absent: no gradient is wanted.
  Gradient() = default;
  /// Memory that holds a sum already.
  explicit Gradient(Tensor<T> sum) : memory_(sum) {}
  /// Memory that holds nothing; `begun` (false, and as long-lived) is set once it does.
  Gradient(Tensor<T> memory, bool* begun) : memory_(memory), begun_(begun) {}

  explicit operator bool() const { return static_cast<bool>(memory_); }

  /// The sum so far, to read or to add to; zeros at first. Absent where the gradient is.
  Tensor<T> sum() const {
    if (empty()) std::memset(memory_.data(), 0, static_cast<std::size_t>(memory_.size()) * sizeof(T));
    return fill();
  }
  /// Whether it is there and nothing has been added yet.
  bool empty() const { return begun_ && !*begun_; }
  /// For an op that writes every element of an empty gradient, or adds to each where it is not empty.
  Tensor<T> fill() const {
    if (begun_) *begun_ = true;
    return memory_;
  }

 private:
  Tensor<T> memory_;
  bool* begun_ = nullptr;
};

}  // namespace heed
