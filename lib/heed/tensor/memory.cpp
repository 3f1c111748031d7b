#include "heed/tensor/memory.h"

#include <new>

#include "heed/base/pages.h"

namespace heed {
namespace {

/// kHugePage is the size of a huge page, in bytes. kWorthIt is the size, in bytes, of the smallest allocation that is
/// put in huge pages.
constexpr std::size_t kHugePage = std::size_t{2} << 20, kWorthIt = 2 * kHugePage;

std::align_val_t alignment_of(std::size_t bytes) {
  return std::align_val_t(bytes >= kWorthIt ? kHugePage : kMemoryAlignment);
}

}  // namespace

void* allocate_memory(std::size_t bytes) {
  void* memory = ::operator new(bytes, alignment_of(bytes));
  if (bytes >= kWorthIt) prefer_huge_pages(memory, bytes);
  return memory;
}

void free_memory(void* memory, std::size_t bytes) {
  ::operator delete(memory, alignment_of(bytes));
}

}  // namespace heed
