#pragma once

#include <cstddef>
#include <utility>

namespace heed {

enum class PageSize { small, huge };

/// Of memory that will all be written: huge pages, where the system has them.
void prefer_huge_pages(void* memory, std::size_t bytes);

/// Gives what the heap has free back to the system, as far as the C library can.
void return_free_heap();

/// Memory from the system in whole pages, zeros at first. It costs nothing before it is written, and goes back to the
/// system, not to the heap, so that what is given back does not count as memory in use.
class Pages {
 public:
  Pages() = default;
  /// `size`: huge where all of some megabytes will be written and the system has such pages; the memory starts at one
  /// then. Throws std::bad_alloc.
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
  /// Room for `bytes`, with what is there; it may move, at the cost of no copy where the system can.
  void grow(std::size_t bytes);
  /// Gives the pages behind the first `bytes` back.
  void shrink(std::size_t bytes);
  /// Gives the whole pages between the bytes `from` and `to` back: what was in them must not be read any more.
  void forget(std::size_t from, std::size_t to);

 private:
  char* data_ = nullptr;
  std::size_t bytes_ = 0;
  PageSize size_ = PageSize::small;
};

}  // namespace heed
