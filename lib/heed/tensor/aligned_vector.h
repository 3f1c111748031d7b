#pragma once

#include <cstddef>
#include <vector>

#include "heed/tensor/memory.h"

namespace heed {

/// An allocator for standard containers. The memory comes from allocate_memory() and is aligned to kMemoryAlignment
/// bytes.
template <class T>
struct AlignedAllocator {
  using value_type = T;

  AlignedAllocator() = default;
  template <class U>
  AlignedAllocator(const AlignedAllocator<U>&) {}

  T* allocate(std::size_t count) { return static_cast<T*>(allocate_memory(count * sizeof(T))); }
  void deallocate(T* memory, std::size_t count) { free_memory(memory, count * sizeof(T)); }
  bool operator==(const AlignedAllocator&) const { return true; }
};

/// A std::vector whose elements begin at a multiple of kMemoryAlignment bytes.
template <class T>
using AlignedVector = std::vector<T, AlignedAllocator<T>>;

}  // namespace heed
