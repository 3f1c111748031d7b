#pragma once

#include <algorithm>
#include <cstddef>
#include <type_traits>
#include <utility>

#include "heed/base/pages.h"

namespace heed {

/// An array of fixed size whose elements are 0 at first. The operating system provides a page of memory when the
/// program first writes to the page. Huge pages suit an array that is written completely; small pages suit an array of
/// which only parts are written, since the other parts then take no memory.
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

  /// Returns the memory of the elements `begin` ... `end` - 1 to the system, as far as these are whole pages. The
  /// elements are lost and must not be read again before they are written.
  void forget(std::size_t begin, std::size_t end) { pages_.forget(begin * sizeof(T), end * sizeof(T)); }

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
