#pragma once

#include <algorithm>
#include <cstddef>
#include <type_traits>
#include <utility>

#include "heed/base/pages.h"

namespace heed {

/// A fixed number of numbers, 0 at first. The system gives its memory when it is written to: all of it soon in huge
/// pages, or only where it is needed in small ones.
template <class T>
class ZeroedArray {
  static_assert(std::is_trivially_copyable_v<T>);

 public:
  explicit ZeroedArray(std::size_t size, PageSize pages = PageSize::huge)
      : pages_(size * sizeof(T), pages), size_(size) {}
  ZeroedArray(const ZeroedArray& other) : ZeroedArray(other.size_) { std::copy(other.begin(), other.end(), begin()); }
  ZeroedArray(ZeroedArray&& other) noexcept : pages_(std::move(other.pages_)), size_(std::exchange(other.size_, 0)) {}
  ZeroedArray& operator=(ZeroedArray other) noexcept {
    std::swap(pages_, other.pages_);
    std::swap(size_, other.size_);
    return *this;
  }
  ~ZeroedArray() = default;

  T* data() { return reinterpret_cast<T*>(pages_.data()); }
  const T* data() const { return reinterpret_cast<const T*>(pages_.data()); }
  std::size_t size() const { return size_; }
  T* begin() { return data(); }
  T* end() { return data() + size_; }
  const T* begin() const { return data(); }
  const T* end() const { return data() + size_; }

 private:
  Pages pages_;
  std::size_t size_;
};

}  // namespace heed
