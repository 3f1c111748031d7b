#pragma once

#include <algorithm>
#include <cstdint>

namespace heed {

/// Asks the CPU to load `rows` rows of n elements, `stride` elements apart, into its first-level cache while it goes
/// on. The CPU does not foresee reads of short rows that lie apart. Rows that will be written should be loaded, too: a
/// store to memory that is not in the cache holds up all stores after it. At most 64 rows are loaded, because more
/// would push out what is in use. (The function is always inlined into the kernel, because gcc leaves out calls of
/// functions that do nothing but prefetch.)
template <class T>
[[gnu::always_inline]] inline void prefetch_rows(const T* first, std::int64_t rows, std::int64_t n,
                                                 std::int64_t stride) {
  constexpr std::int64_t kLine = 64 / sizeof(T), kMost = 64;
  for (std::int64_t r = 0; r < std::min(rows, kMost); ++r)
    for (std::int64_t i = 0; i < n; i += kLine) __builtin_prefetch(first + r * stride + i);
}

/// Asks the CPU to load an array of n elements, or its first 64 lines of the cache, as prefetch_rows() does.
template <class T>
[[gnu::always_inline]] inline void prefetch_array(const T* first, std::int64_t n) {
  constexpr std::int64_t kLine = 64 / sizeof(T);
  prefetch_rows(first, (n + kLine - 1) / kLine, kLine, kLine);
}

}  // namespace heed
