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

/// Memory for the tensors of one training or decoding step. allocate() returns parts of large blocks of memory, and
/// reset() frees all parts at once. After the first few steps the blocks are large enough for a whole step, so that
/// later steps allocate nothing from the heap. An arena is for one thread at a time.
class Arena {
 public:
  /// Creates an empty arena. Its memory comes from `source`: the memory of the host, or of a GPU.
  explicit Arena(MemorySource source = {}) : source_(source) {}
  Arena(const Arena&) = delete;
  Arena& operator=(const Arena&) = delete;

  /// Returns uninitialised memory, aligned as the source says, that is valid until reset() or release(). Throws what
  /// the source throws where it has no memory left.
  void* allocate(std::size_t bytes);

  /// Returns a tensor of this shape in the arena's memory, with uninitialised elements.
  template <class T>
  Tensor<T> tensor(const Shape& shape) {
    static_assert(std::is_trivially_destructible_v<T>);
    return {static_cast<T*>(allocate(static_cast<std::size_t>(shape.size()) * sizeof(T))), shape};
  }
  /// Returns a tensor of this shape in the arena's memory, with all elements 0. For memory of the host only.
  template <class T>
  Tensor<T> zeros(const Shape& shape) {
    const Tensor<T> out = tensor<T>(shape);
    std::memset(out.data(), 0, static_cast<std::size_t>(out.size()) * sizeof(T));
    return out;
  }

  /// Frees all memory for reuse: every tensor in the arena becomes invalid. The arena keeps the memory for later steps.
  /// Replaces several blocks of memory by one block of the same total size, unless the total is above 64 MiB.
  void reset();

  /// A state of the arena: release(mark) frees the memory that was allocated after mark() had returned `mark`.
  struct Mark {
    /// The index of the arena's current block of memory, and the number of bytes used in this block.
    std::size_t block, used;
  };
  Mark mark() const { return {current_, blocks_.empty() ? 0 : blocks_[current_].used}; }
  void release(Mark mark);

  /// Returns the number of bytes of the arena that tensors use now.
  std::size_t used() const;
  /// Returns the number of bytes that the arena has allocated from its source, used by tensors or not.
  std::size_t reserved() const;
  /// Returns where the arena's memory comes from.
  MemorySource source() const { return source_; }

 private:
  struct Free {
    std::size_t bytes;
    void (*free)(void*, std::size_t);
    void operator()(std::byte* memory) const { free(memory, bytes); }
  };
  struct Block {
    std::unique_ptr<std::byte[], Free> memory;
    std::size_t size = 0, used = 0;
  };

  void add_block(std::size_t bytes);

  MemorySource source_;
  std::vector<Block> blocks_;
  std::size_t current_ = 0;
};

/// Frees, at the end of a C++ scope, the memory that was allocated from an arena within the scope.
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
