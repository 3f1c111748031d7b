#pragma once

#include <cstdint>
#include <cstring>
#include <vector>

#include "heed/tensor/arena.h"
#include "heed/tensor/tensor.h"

namespace heed {

/// Memory for the gradients of intermediate results. During the backward pass few gradients are in use at a time, so
/// that freed buffers are reused first, while they are still in the cache. If no freed buffer is large enough, the pool
/// reuses the memory of values that the rest of the backward pass does not read (see lend()), and only then allocates
/// more.
template <class T>
class GradientPool {
 public:
  /// A buffer of the pool.
  struct Piece {
    T* memory = nullptr;
    std::int64_t size = 0;  ///< number of elements
  };

  /// Returns an uninitialised buffer of at least `size` elements. Prefers buffers that were given back to buffers that
  /// were lent, and takes the smallest buffer that is large enough. Allocates a new buffer if no buffer is large
  /// enough.
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
  /// Gives a buffer, which take() returned before, back to the pool.
  void give_back(Piece piece) { given_back_.push_back(piece); }
  /// Lets the pool use a buffer that the pool did not allocate, until reset(): the memory of a value that no op reads
  /// any more.
  void lend(Piece piece) { lent_.push_back(piece); }
  /// Returns the bytes that the pool holds from the heap; lent buffers do not count.
  std::size_t reserved() const { return arena_.reserved(); }
  /// Starts a new computation: all buffers of take() become free, and lent buffers leave the pool.
  void reset() {
    given_back_.clear();
    lent_.clear();
    arena_.reset();
  }

 private:
  Arena arena_;
  std::vector<Piece> given_back_, lent_;  // the free buffers: from the pool's own arena, and from lend()
};

/// The state of one variable's gradient. All copies of the Gradient refer to the same state.
template <class T>
struct GradientState {
  GradientPool<T>* pool;
  /// The gradient's buffer; absent until the first op adds to the gradient.
  typename GradientPool<T>::Piece piece = {};
  bool begun = false;  ///< whether an op has added to the gradient

  /// Returns the gradient's buffer to the pool: no op reads the gradient any more.
  void give_back() {
    if (piece.memory) pool->give_back(piece);
    piece = {};
  }
};

/// The gradient of a variable. Ops add to the gradient during the backward pass. The first op that adds takes a buffer
/// for the gradient and overwrites the buffer; to fill all gradients with zeros beforehand would read and write all of
/// them once more. Copying a Gradient copies the reference and not the numbers.
template <class T>
class Gradient {
 public:
  /// Creates an absent gradient: the variable's gradient is not computed.
  Gradient() = default;
  /// Creates a gradient in existing memory that already holds a sum: a parameter's gradient. Ops add to the sum.
  explicit Gradient(Tensor<T> sum) : sum_(sum) {}
  /// Creates an empty gradient of this shape, without a buffer. `state` must live as long as the gradient.
  Gradient(const Shape& shape, GradientState<T>* state) : shape_(shape), state_(state) {}

  /// Tells whether the gradient is present, that is, to be computed.
  explicit operator bool() const { return state_ || sum_; }

  /// Returns the sum of what ops have added so far, to read or to add to. Fills an empty gradient with zeros. Returns
  /// an absent tensor if the gradient is absent.
  Tensor<T> sum() const {
    const bool zero = empty();
    const Tensor<T> memory = fill();
    if (zero) std::memset(memory.data(), 0, static_cast<std::size_t>(memory.size()) * sizeof(T));
    return memory;
  }
  /// Tells whether the gradient is present and no op has added to the gradient yet.
  bool empty() const { return state_ && !state_->begun; }
  /// Returns the gradient's memory without filling it with zeros. The caller must have asked empty() before: if the
  /// gradient was empty, the caller overwrites every element, else adds to the elements.
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
