#pragma once

#include <algorithm>
#include <cstddef>
#include <type_traits>
#include <utility>

#include "heed/tensor/memory.h"

namespace heed {

/// A fixed number of numbers, 0 at first. The system gives its memory when it is written to: all of it soon in `huge`
/// pages, or only where it is needed in `small` ones.
template <class T>
class ZeroedArray {
  static_assert(std::is_trivially_copyable_v<T>);

 public:
  explicit ZeroedArray(std::size_t size, Pages pages = Pages::huge)
      : data_(static_cast<T*>(allocate_zeroed_memory(size * sizeof(T), pages))), size_(size) {}
  ZeroedArray(const ZeroedArray& other) : ZeroedArray(other.size_) { std::copy_n(other.data_, size_, data_); }
  ZeroedArray(ZeroedArray&& other) noexcept
      : data_(std::exchange(other.data_, nullptr)), size_(std::exchange(other.size_, 0)) {}
  ZeroedArray& operator=(ZeroedArray other) noexcept {
    std::swap(data_, other.data_);
    std::swap(size_, other.size_);
    return *this;
  }
  ~ZeroedArray() {
    if (data_) free_zeroed_memory(data_, size_ * sizeof(T));
  }

  T* data() { return data_; }
  const T* data() const { return data_; }
  std::size_t size() const { return size_; }
  T* begin() { return data_; }
  T* end() { return data_ + size_; }
  const T* begin() const { return data_; }
  const T* end() const { return data_ + size_; }

 private:
  T* data_;
  std::size_t size_;
};

}  // namespace heed
