#include "heed/base/pages.h"

#include <sys/mman.h>
#include <unistd.h>

#include <new>

namespace heed {
namespace {

std::size_t whole_pages(std::size_t bytes) {
  const auto page = static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
  return (bytes + page - 1) / page * page;
}

}  // namespace

Pages::Pages(std::size_t bytes) : bytes_(whole_pages(bytes)) {
  if (bytes_ == 0) return;
  void* const memory = ::mmap(nullptr, bytes_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) throw std::bad_alloc();
  data_ = static_cast<char*>(memory);
}

Pages::~Pages() {
  if (bytes_ > 0) ::munmap(data_, bytes_);
}

void Pages::shrink(std::size_t bytes) {
  const std::size_t kept = whole_pages(bytes);
  if (kept >= bytes_) return;
  ::munmap(data_ + kept, bytes_ - kept);
  bytes_ = kept;
}

}  // namespace heed
