#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#ifdef __SSE2__
#include <emmintrin.h>
#endif

namespace heed {

/// Sixteen bytes as lanes of an unsigned type, for searches of text: all lanes are compared at once by vectors of the
/// compiler, without asking what the CPU has. Comparisons give masks, whose lanes are all ones or all zeros.
template <class T>
struct Lanes {
  typedef T Vector __attribute__((vector_size(16)));
  static constexpr std::size_t kCount = 16 / sizeof(T);

  static Vector load(const T* at) {
    Vector lanes;
    std::memcpy(&lanes, at, sizeof(lanes));
    return lanes;
  }

  /// A bit for each byte of a mask, the first lane lowest.
  template <class Mask>
  static std::uint32_t bits(Mask mask) {
    static_assert(sizeof(Mask) == 16);
#ifdef __SSE2__
    return static_cast<std::uint32_t>(_mm_movemask_epi8(std::bit_cast<__m128i>(mask)));
#else
    std::uint8_t bytes[16];
    std::memcpy(bytes, &mask, sizeof(bytes));
    std::uint32_t all = 0;
    for (std::size_t i = 0; i < sizeof(bytes); ++i) all |= static_cast<std::uint32_t>(bytes[i] & 1) << i;
    return all;
#endif
  }

  /// The first lane of a mask that is set; kCount where none is.
  template <class Mask>
  static std::size_t first(Mask mask) {
    return static_cast<std::size_t>(std::countr_zero(bits(mask) | 0x10000u)) / sizeof(T);
  }
};

/// The first place from `at` to before `size` that is found; `size` where there is none. found(get, place) compares
/// get(place) and the like: elements, or lanes that begin there. It may look at places from `front` (at most `at`) on.
template <class T, class Found>
std::size_t find_lane(const T* data, std::size_t size, std::size_t at, std::size_t front, Found found) {
  using L = Lanes<T>;
  const auto lanes = [&](std::size_t place) { return L::load(data + place); };
  const auto element = [&](std::size_t place) { return data[place]; };
  const auto first_from = [&](std::size_t place) { return place + L::first(found(lanes, place)); };
  const std::size_t start = at;
  for (; at + L::kCount <= size; at += L::kCount)
    if (const std::size_t place = first_from(at); place < at + L::kCount) return place;
  // The rest together with some that may be known already.
  if (at < size && size >= front + L::kCount)
    if (const std::size_t place = first_from(size - L::kCount); place >= start) return place;
  while (at < size && !found(element, at)) ++at;
  return at;
}

}  // namespace heed
