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

/// Memory that is taken piece by piece and given back whole. After the first few steps one block, or a few where much
/// is needed, hold a whole step's memory, so that a step allocates nothing from the heap. Not for several threads at
/// once.
class Arena {
 public:
  Arena() = default;
  Arena(const Arena&) = delete;
  Arena& operator=(const Arena&) = delete;

  /// Uninitialised memory, aligned to 64 bytes.
  void* allocate(std::size_t bytes);

  template <class T>
  Tensor<T> tensor(const Shape& shape) {
    static_assert(std::is_trivially_destructible_v<T>);
    return {static_cast<T*>(allocate(static_cast<std::size_t>(shape.size()) * sizeof(T))), shape};
  }
  template <class T>
  Tensor<T> zeros(const Shape& shape) {
    const Tensor<T> out = tensor<T>(shape);
    std::memset(out.data(), 0, static_cast<std::size_t>(out.size()) * sizeof(T));
    return out;
  }

  /// Gives everything back; all views into the arena end. Several small blocks are merged into one.
  void reset();

  /// A point to go back to: what is allocated between mark() and release() is scratch.
  struct Mark {
    std::size_t block, used;
  };
  Mark mark() const { return {current_, blocks_.empty() ? 0 : blocks_[current_].used}; }
  void release(Mark mark);

  /// Bytes in use now, and held from the heap.
  std::size_t used() const;
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

/// Scratch memory for the lifetime of a scope.
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
