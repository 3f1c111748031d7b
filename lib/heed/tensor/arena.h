#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <type_traits>
#include <vector>

#include "heed/tensor/memory.h"
#include "heed/tensor/tensor.h"

namespace heed {

/// Memory for the tensors of one training or decoding step. allocate() hands out pieces of large blocks, and reset()
/// takes all pieces back at once. After the first few steps the blocks are large enough for a whole step, so that later
/// steps allocate nothing from the heap. An arena is for one thread at a time.
class Arena {
 public:
  Arena() = default;
  Arena(const Arena&) = delete;
  Arena& operator=(const Arena&) = delete;

  /// Returns uninitialised memory, aligned to 64 bytes, that is valid until reset() or release(). Throws
  /// std::bad_alloc.
  void* allocate(std::size_t bytes);

  /// Returns a tensor of this shape with uninitialised elements.
  template <class T>
  Tensor<T> tensor(const Shape& shape) {
    static_assert(std::is_trivially_destructible_v<T>);
    return {static_cast<T*>(allocate(static_cast<std::size_t>(shape.size()) * sizeof(T))), shape};
  }
  /// Returns a tensor of this shape whose elements are 0.
  template <class T>
  Tensor<T> zeros(const Shape& shape) {
    const Tensor<T> out = tensor<T>(shape);
    std::memset(out.data(), 0, static_cast<std::size_t>(out.size()) * sizeof(T));
    return out;
  }

  /// Takes back all memory: every tensor of the arena becomes invalid. Replaces several blocks by one block of the same
  /// total size, unless the total is above 64 MiB. Keeps the memory for later steps.
  void reset();

  /// A state of the arena: release(mark) takes back the memory that was allocated after mark() returned `mark`.
  struct Mark {
    std::size_t block, used;  ///< index of the current block, bytes used in the current block
  };
  Mark mark() const { return {current_, blocks_.empty() ? 0 : blocks_[current_].used}; }
  void release(Mark mark);

  /// Returns the bytes that are allocated to tensors now.
  std::size_t used() const;
  /// Returns the bytes that the arena holds from the heap, used or not.
  std::size_t reserved() const;

 private:
  struct Free {
    std::size_t bytes;
    void operator()(std::byte* memory) const { free_memory(memory, bytes); }
  };
  struct Block {
    std::unique_ptr<std::byte[], Free> memory;
    std::size_t size = 0, used = 0;
  };

  void add_block(std::size_t bytes);

  std::vector<Block> blocks_;
  std::size_t current_ = 0;
};

/// Takes back, at the end of a C++ scope, the memory that was allocated from an arena within the scope.
class ArenaScope {
 public:
  explicit ArenaScope(Arena& arena) : arena_(arena), mark_(arena.mark()) {}
  ~ArenaScope() { arena_.release(mark_); }
  ArenaScope(const ArenaScope&) = delete;
  ArenaScope& operator=(const ArenaScope&) = delete;

 private:
  Arena& arena_;
  Arena::Mark mark_;
};

}  // namespace heed
