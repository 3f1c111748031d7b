#include "heed/tensor/memory.h"

#include <sys/mman.h>

#include <new>

namespace heed {
namespace {

constexpr std::size_t kHugePage = std::size_t{2} << 20, kWorthIt = 2 * kHugePage;

std::align_val_t alignment_of(std::size_t bytes) {
  return std::align_val_t(bytes >= kWorthIt ? kHugePage : kMemoryAlignment);
}

}  // namespace

void* allocate_memory(std::size_t bytes) {
  void* memory = ::operator new(bytes, alignment_of(bytes));
  // A wish, no more: systems without huge pages refuse.
  if (bytes >= kWorthIt) ::madvise(memory, bytes / kHugePage * kHugePage, MADV_HUGEPAGE);
  return memory;
}

void free_memory(void* memory, std::size_t bytes) {
  ::operator delete(memory, alignment_of(bytes));
}

}  // namespace heed
