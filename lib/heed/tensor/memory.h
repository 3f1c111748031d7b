#pragma once

#include <cstddef>

#include "heed/base/error.h"

namespace heed {

/// The exception that says that a GPU has not enough free memory. A smaller batch may fit.
class OutOfGpuMemory : public Error {
 public:
  using Error::Error;
};

/// The alignment of tensors in bytes: the size of a cache line and of the widest vector registers (AVX-512).
constexpr std::size_t kMemoryAlignment = 64;

/// Allocates uninitialised memory, aligned to kMemoryAlignment bytes. Memory of 4 MiB or more is in huge pages where
/// the system has them, which saves most page faults and address translations. Throws std::bad_alloc.
void* allocate_memory(std::size_t bytes);
/// Frees memory that allocate_memory() returned. `bytes` must be the number of bytes that was given to
/// allocate_memory().
void free_memory(void* memory, std::size_t bytes);

/// Where memory comes from: functions like allocate_memory() and free_memory(), and the alignment in bytes of the
/// memory that they return, and of the tensors in it.
struct MemorySource {
  void* (*allocate)(std::size_t bytes) = allocate_memory;
  void (*free)(void* memory, std::size_t bytes) = free_memory;
  std::size_t alignment = kMemoryAlignment;  ///< a power of two
};

}  // namespace heed
