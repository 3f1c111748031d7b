#include "heed/base/pages.h"

#include <sys/mman.h>
#include <unistd.h>

#include <cstdint>
#include <cstring>
#include <new>

#ifdef __GLIBC__
#include <malloc.h>
#endif

namespace heed {
namespace {

constexpr std::size_t kHugePage = std::size_t{2} << 20;

std::size_t whole_pages(std::size_t bytes) {
  const auto page = static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
  return (bytes + page - 1) / page * page;
}

/// Returns the number of bytes from the address `memory` up to the next address that is a multiple of the size of a
/// huge page.
std::size_t before_huge_page(const void* memory) {
  return (kHugePage - reinterpret_cast<std::uintptr_t>(memory) % kHugePage) % kHugePage;
}

}  // namespace

void prefer_huge_pages(void* memory, std::size_t bytes) {
  const std::size_t before = before_huge_page(memory);
  if (bytes < before + kHugePage) return;
  ::madvise(static_cast<char*>(memory) + before, (bytes - before) / kHugePage * kHugePage, MADV_HUGEPAGE);
}

void return_free_heap() {
#ifdef __GLIBC__
  ::malloc_trim(0);
#endif
}

Pages::Pages(std::size_t bytes, PageSize size) : bytes_(whole_pages(bytes)), size_(size) {
  if (bytes_ == 0) return;
  const bool huge = size == PageSize::huge;
  // Allocates one huge page more than needed: somewhere in the first huge page is an address where a huge page can
  // start. The bytes before that address and the bytes too many at the end are given back below.
  const std::size_t all = bytes_ + (huge ? kHugePage : 0);
  void* const memory = ::mmap(nullptr, all, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (memory == MAP_FAILED) throw std::bad_alloc();
  data_ = static_cast<char*>(memory);
  if (huge) {
    const std::size_t before = before_huge_page(memory);
    if (before > 0) ::munmap(data_, before);
    data_ += before;
    if (all > before + bytes_) ::munmap(data_ + bytes_, all - before - bytes_);
  }
  // madvise() is only a hint: the system may still use pages of the other size, so the result is not tested.
  ::madvise(data_, bytes_, huge ? MADV_HUGEPAGE : MADV_NOHUGEPAGE);
}

Pages::~Pages() {
  if (bytes_ > 0) ::munmap(data_, bytes_);
}

void Pages::grow(std::size_t bytes) {
  if (bytes <= bytes_) return;
  Pages larger(bytes, size_);
  if (bytes_ > 0) {
#ifdef __linux__
    if (::mremap(data_, bytes_, larger.bytes_, MREMAP_MAYMOVE | MREMAP_FIXED, larger.data_) == MAP_FAILED) {
      // mremap() has failed, but may have removed the mapping of `larger` already, so the destructor of `larger` must
      // not unmap that memory.
      larger.bytes_ = 0;
      throw std::bad_alloc();
    }
    bytes_ = 0;
#else
    std::memcpy(larger.data_, data_, bytes_);
#endif
  }
  *this = std::move(larger);
}

void Pages::shrink(std::size_t bytes) {
  const std::size_t kept = whole_pages(bytes);
  if (kept >= bytes_) return;
  ::munmap(data_ + kept, bytes_ - kept);
  bytes_ = kept;
}

void Pages::forget(std::size_t from, std::size_t to) {
  const std::size_t begin = whole_pages(from), end = whole_pages(to + 1) - whole_pages(1);
  // madvise() is only a hint: the system may keep the pages, so the result is not tested.
  if (begin < end) ::madvise(data_ + begin, end - begin, MADV_DONTNEED);
}

}  // namespace heed
