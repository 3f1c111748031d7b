#pragma once

#include <cstddef>

namespace heed {

/// For the widest vector registers and whole cache lines.
constexpr std::size_t kMemoryAlignment = 64;

/// Uninitialised memory on a 64-byte boundary; from some megabytes on in huge pages where the system has them, which
/// saves most page faults and address translations. Throws std::bad_alloc.
void* allocate_memory(std::size_t bytes);
/// `bytes` as it was allocated.
void free_memory(void* memory, std::size_t bytes);

}  // namespace heed
