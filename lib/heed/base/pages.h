#pragma once

#include <cstddef>
#include <utility>

namespace heed {

enum class PageSize { small, huge };

/// Asks the system to use huge pages (of 2 MiB), if it has them, for the given memory, which the caller will write
/// completely.
void prefer_huge_pages(void* memory, std::size_t bytes);

/// Returns the memory of the heap that is free (not allocated) to the system, as far as the C library can do so.
void return_free_heap();

/// Owns memory that comes from the operating system in whole pages and is zero at first. The system provides physical
/// memory for a page when something is written to the page for the first time. Freed pages go back to the system, not
/// to the heap, so that they no longer count as memory of the process.
class Pages {
 public:
  Pages() = default;
  /// Allocates `bytes` bytes of memory, rounded up to whole pages. Use PageSize::huge for memory of several megabytes
  /// that will be written completely: if the system has huge pages (of 2 MiB), the memory starts at an address where a
  /// huge page can start. Throws std::bad_alloc.
  explicit Pages(std::size_t bytes, PageSize size = PageSize::small);
  Pages(Pages&& other) noexcept
      : data_(std::exchange(other.data_, nullptr)), bytes_(std::exchange(other.bytes_, 0)), size_(other.size_) {}
  Pages& operator=(Pages&& other) noexcept {
    std::swap(data_, other.data_);
    std::swap(bytes_, other.bytes_);
    std::swap(size_, other.size_);
    return *this;
  }
  ~Pages();

  char* data() const { return data_; }
  std::size_t size() const { return bytes_; }
  /// Enlarges the memory to at least `bytes` and keeps the contents. The address of the memory may change; on Linux no
  /// bytes are copied then, since the system maps the same pages at the new address.
  void grow(std::size_t bytes);
  /// Keeps the first `bytes` bytes, rounded up to whole pages, and returns the pages behind them to the system.
  void shrink(std::size_t bytes);
  /// Returns the whole pages between the byte offsets `from` and `to` to the system. The contents of these pages are
  /// lost and must not be read again.
  void forget(std::size_t from, std::size_t to);

 private:
  char* data_ = nullptr;
  std::size_t bytes_ = 0;
  PageSize size_ = PageSize::small;
};

}  // namespace heed
