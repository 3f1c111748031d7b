#include "heed/tensor/memory.h"

#include <sys/mman.h>

#include <cstdint>
#include <new>

namespace heed {
namespace {

constexpr std::size_t kHugePage = std::size_t{2} << 20, kWorthIt = 2 * kHugePage;

std::align_val_t alignment_of(std::size_t bytes) {
  return std::align_val_t(bytes >= kWorthIt ? kHugePage : kMemoryAlignment);
}

/// Whole pages, at least one.
std::size_t mapped_size(std::size_t bytes) {
  constexpr std::size_t kPage = 4096;
  return (bytes + kPage) / kPage * kPage;
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

void* allocate_zeroed_memory(std::size_t bytes, Pages pages) {
  // More than needed, so that a huge page's boundary is in it; what is around goes back.
  const std::size_t size = mapped_size(bytes), all = size + kHugePage;
  void* const mapping =
      ::mmap(nullptr, all, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (mapping == MAP_FAILED) throw std::bad_alloc();
  const auto start = reinterpret_cast<std::uintptr_t>(mapping);
  const std::uintptr_t aligned = (start + kHugePage - 1) / kHugePage * kHugePage;
  auto* const memory = static_cast<std::byte*>(mapping) + (aligned - start);
  if (aligned > start) ::munmap(mapping, aligned - start);
  if (start + all > aligned + size) ::munmap(memory + size, start + all - (aligned + size));
  if (bytes >= kWorthIt) ::madvise(memory, size, pages == Pages::huge ? MADV_HUGEPAGE : MADV_NOHUGEPAGE);
  return memory;
}

void free_zeroed_memory(void* memory, std::size_t bytes) {
  ::munmap(memory, mapped_size(bytes));
}

}  // namespace heed
