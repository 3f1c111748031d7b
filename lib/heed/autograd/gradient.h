#pragma once

#include <cstdint>
#include <cstring>
#include <vector>

#include "heed/tensor/arena.h"
#include "heed/tensor/tensor.h"

namespace heed {

/// Memory for gradients on the way back, where few of them are in use at a time: what one has given back the next one
/// takes, while it is in the cache still. Where there is none, it takes that of a value that nobody needs any more.
template <class T>
class GradientPool {
 public:
  struct Piece {
    T* memory = nullptr;
    std::int64_t size = 0;
  };

  /// Uninitialised memory of at least so many elements.
  Piece take(std::int64_t size) {
    for (std::vector<Piece>* const free : {&given_back_, &lent_}) {
      auto best = free->end();
      for (auto piece = free->begin(); piece != free->end(); ++piece)
        if (piece->size >= size && (best == free->end() || piece->size < best->size)) best = piece;
      if (best == free->end()) continue;
      const Piece taken = *best;
      *best = free->back();
      free->pop_back();
      return taken;
    }
    return {arena_.tensor<T>({size}).data(), size};
  }
  void give_back(Piece piece) { given_back_.push_back(piece); }
  /// Lends memory from elsewhere until reset().
  void lend(Piece piece) { lent_.push_back(piece); }
  /// Bytes held.
  std::size_t reserved() const { return arena_.reserved(); }
  /// Takes everything back.
  void reset() {
    given_back_.clear();
    lent_.clear();
    arena_.reset();
  }

 private:
  Arena arena_;
  std::vector<Piece> given_back_, lent_;
};

/// What the copies of a variable's gradient have in common.
template <class T>
struct GradientState {
  GradientPool<T>* pool;
  typename GradientPool<T>::Piece piece = {};
  bool begun = false;  ///< something has been added

  /// At its end: nobody will ask for the gradient any more.
  void give_back() {
    if (piece.memory) pool->give_back(piece);
    piece = {};
  }
};

/// The gradient of a variable, which ops add to on the way back. The first of them takes memory for it and fills that:
/// a fill with zeros long before would send all gradients through the cache once more. Copying copies the view.
template <class T>
class Gradient {
 public:
  /// Absent: no gradient is wanted.
  Gradient() = default;
  /// Memory that holds a sum already.
  explicit Gradient(Tensor<T> sum) : sum_(sum) {}
  /// Holds nothing as yet. `state` lives as long as the gradient.
  Gradient(const Shape& shape, GradientState<T>* state) : shape_(shape), state_(state) {}

  explicit operator bool() const { return state_ || sum_; }

  /// The sum so far, to read or to add to; zeros at first. Absent where the gradient is.
  Tensor<T> sum() const {
    const bool zero = empty();
    const Tensor<T> memory = fill();
    if (zero) std::memset(memory.data(), 0, static_cast<std::size_t>(memory.size()) * sizeof(T));
    return memory;
  }
  /// Whether it is there and nothing has been added yet.
  bool empty() const { return state_ && !state_->begun; }
  /// For an op that writes every element of an empty gradient, or adds to each where it is not empty.
  Tensor<T> fill() const {
    if (!state_) return sum_;
    if (!state_->begun) state_->piece = state_->pool->take(shape_.size());
    state_->begun = true;
    return {state_->piece.memory, shape_};
  }

 private:
  Tensor<T> sum_;
  Shape shape_;
  GradientState<T>* state_ = nullptr;
};

}  // namespace heed
