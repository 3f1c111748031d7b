#pragma once

#include <cstdint>
#include <vector>

#include "heed/base/error.h"
#include "heed/tensor/bfloat16.h"
#include "heed/tensor/device.h"
#include "heed/tensor/tensor.h"

namespace heed {

/// A pool of memory for the gradients of intermediate results. During the backward pass few gradients are in use at a
/// time. Freed buffers are therefore reused first, while they are still in the processor's cache. If no freed buffer is
/// large enough, the pool reuses the memory of values that the rest of the backward pass does not read (see lend()),
/// and only then allocates more.
template <class T>
class GradientPool {
 public:
  /// A buffer in memory that can hold the elements of a gradient.
  struct Piece {
    T* memory = nullptr;
    std::int64_t size = 0;  ///< number of elements
  };

  explicit GradientPool(Device device) : device_(device), arena_(device.arena().source()) {}

  Device device() const { return device_; }
  /// Returns an uninitialised buffer of at least `size` elements. Prefers buffers that give_back() received to buffers
  /// that lend() received, and takes the smallest buffer that is large enough. Allocates a new buffer if no buffer is
  /// large enough.
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
  /// Gives back a buffer that take() returned: a later take() may return the buffer again.
  void give_back(Piece piece) { given_back_.push_back(piece); }
  /// Lets the pool use, until reset(), a buffer that the pool did not allocate: the memory of a value that no op reads
  /// any more.
  void lend(Piece piece) { lent_.push_back(piece); }
  /// Returns the number of bytes that the pool has allocated from the heap; buffers that lend() received do not count.
  std::size_t reserved() const { return arena_.reserved(); }
  /// Starts a new computation: all buffers that take() returned become free, and the pool forgets the buffers that
  /// lend() received.
  void reset() {
    given_back_.clear();
    lent_.clear();
    arena_.reset();
  }

 private:
  Device device_;
  Arena arena_;
  // The free buffers: given_back_ from the arena of this pool, lent_ from lend().
  std::vector<Piece> given_back_, lent_;
};

/// The state of one variable's gradient. All copies of a Gradient object refer to the same state.
template <class T>
struct GradientState {
  GradientPool<T>* pool;
  /// The gradient's buffer; absent until the first op adds to the gradient.
  typename GradientPool<T>::Piece piece = {};
  bool begun = false;           ///< whether an op has already added to the gradient
  bool may_be_rounded = false;  ///< whether the op that adds may store it as bfloat16 (see Gradient::allow_rounding())
  bool rounded = false;         ///< whether the op has stored it as bfloat16
  bool is_one = false;  ///< whether it is the gradient of the loss from which the backward pass starts, and so 1

  /// Returns the gradient's buffer to the pool; the caller must know that no op reads the gradient any more.
  void give_back() {
    if (piece.memory) pool->give_back(piece);
    piece = {};
  }
};

/// The gradient of a variable. Ops add to the gradient during the backward pass. The first op that adds takes a buffer
/// for the gradient and overwrites the buffer: to fill all gradients with zeros beforehand would read and write their
/// memory once more. Copying a Gradient copies a reference to the numbers and not the numbers.
template <class T>
class Gradient {
 public:
  /// Creates an absent gradient, for a variable whose gradient is not computed.
  Gradient() = default;
  /// Creates a gradient in existing memory, to which ops add: the gradient of a parameter, which may already hold the
  /// gradients of earlier computations.
  explicit Gradient(Tensor<T> sum) : sum_(sum) {}
  /// Creates an empty gradient of this shape, to which no op has added yet and which has no buffer. `state` must live
  /// as long as the gradient.
  Gradient(const Shape& shape, GradientState<T>* state) : shape_(shape), state_(state) {}

  /// Tells whether the gradient is present, that is, whether ops have to compute the gradient of the variable.
  explicit operator bool() const { return state_ || sum_; }

  /// Returns the gradient summed over the ops that have added to the gradient so far, to read or to add to. Fills an
  /// empty gradient with zeros. Returns an absent tensor if the gradient is absent.
  Tensor<T> sum() const {
    const bool zero = empty();
    const Tensor<T> memory = begin_writing();
    if (zero) state_->pool->device().fill(memory, T(0));
    return memory;
  }
  /// Tells whether the gradient is present and no op has added to the gradient yet.
  bool empty() const { return state_ && !state_->begun; }
  /// Tells whether the gradient is the gradient of the loss from which the backward pass starts. That gradient is 1, so
  /// that an op need not read it; on a GPU, reading it would make the host wait.
  bool is_one() const { return state_ && state_->is_one; }
  /// Says that the gradient is 1.
  void set_one() const {
    if (state_) state_->is_one = true;
  }
  /// Returns the memory of the gradient without filling the memory with zeros. The caller must have called empty()
  /// before: if the gradient was empty, the caller must overwrite every element, otherwise add to the elements.
  Tensor<T> begin_writing() const {
    if (!state_) return sum_;
    if (state_->rounded) throw Error("internal: an op adds to a gradient that is stored as bfloat16");
    begin(shape_.size());
    return {state_->piece.memory, shape_};
  }

  /// Says that one op alone reads the variable, and that the op which computed it can read a gradient in bfloat16 (see
  /// rounded()). The op that reads the variable may then call begin_writing_rounded() instead of begin_writing().
  void allow_rounding() const {
    if (state_) state_->may_be_rounded = true;
  }
  bool may_be_rounded() const { return state_ && state_->may_be_rounded; }
  /// Returns memory for the gradient as bfloat16, in half the memory. Throws Error unless may_be_rounded() is true, or
  /// if an op has added to the gradient.
  Tensor<Bfloat16> begin_writing_rounded() const {
    if (!may_be_rounded() || state_->begun)
      throw Error("internal: a gradient to which several ops add cannot be stored as bfloat16");
    constexpr auto kInPlaceOfOne = static_cast<std::int64_t>(sizeof(T) / sizeof(Bfloat16));
    begin((shape_.size() + kInPlaceOfOne - 1) / kInPlaceOfOne);
    state_->rounded = true;
    return rounded();
  }
  /// Returns the gradient as begin_writing_rounded() has stored it; an absent tensor where it is stored in full.
  Tensor<Bfloat16> rounded() const {
    if (!state_ || !state_->rounded) return {};
    return {reinterpret_cast<Bfloat16*>(state_->piece.memory), shape_};
  }

 private:
  /// Takes a buffer of at least `size` elements, unless the gradient has one.
  void begin(std::int64_t size) const {
    if (!state_->begun) state_->piece = state_->pool->take(size);
    state_->begun = true;
  }

  Tensor<T> sum_;
  Shape shape_;
  GradientState<T>* state_ = nullptr;
};

}  // namespace heed
