#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#ifdef __SSE2__
#include <emmintrin.h>
#endif

namespace heed {

/// Sixteen bytes as a vector of lanes of the unsigned type T: 16 lanes of 8 bits, or 8 lanes of 16 bits, and so on. One
/// operation compares all lanes at once, which makes searches of text fast. The vectors are a language extension of the
/// compiler and work on every CPU, so that no code asks which instruction set the CPU has. A comparison of two vectors
/// gives a mask: a vector in which each lane is all ones (true) or all zeros (false).
template <class T>
struct Lanes {
  typedef T Vector __attribute__((vector_size(16)));
  static constexpr std::size_t kCount = 16 / sizeof(T);

  static Vector load(const T* at) {
    Vector lanes;
    std::memcpy(&lanes, at, sizeof(lanes));
    return lanes;
  }

  /// Returns a mask (the result of a vector comparison) as 16 bits, one bit for each byte of the vector; the lowest bit
  /// belongs to the first byte of the first lane.
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

  /// Returns the index of the first lane that is true in a mask (the result of a vector comparison), or kCount when no
  /// lane is true.
  template <class Mask>
  static std::size_t first(Mask mask) {
    return static_cast<std::size_t>(std::countr_zero(bits(mask) | 0x10000u)) / sizeof(T);
  }
};

/// Returns the first index from `at` to size-1 of the array `data` for which found() is true, or `size` when no such
/// index exists. Vectors of kCount elements make the search fast. Example, a search for a blank behind a letter 'a' or
/// behind another blank:
///
///     find_lane(bytes, size, 1, 1, [](auto get, std::size_t place) {
///       return (get(place) == ' ') & ((get(place - 1) == 'a') | (get(place - 1) == ' '));
///     });
///
/// `found` is a generic function that find_lane() calls in two ways. For one element, get(place) returns data[place],
/// and `found` returns a bool. For kCount elements at once, get(place) returns the vector of the elements data[place]
/// ... data[place + kCount - 1], and `found` returns a mask with one lane for each element. `front` (at most `at`) is
/// the smallest `place` that find_lane() passes to `found`: 1 in the example, since get(place - 1) must not read before
/// the array.
template <class T, class Found>
std::size_t find_lane(const T* data, std::size_t size, std::size_t at, std::size_t front, Found found) {
  using L = Lanes<T>;
  const auto lanes = [&](std::size_t place) { return L::load(data + place); };
  const auto element = [&](std::size_t place) { return data[place]; };
  const auto first_from = [&](std::size_t place) { return place + L::first(found(lanes, place)); };
  const std::size_t start = at;
  for (; at + L::kCount <= size; at += L::kCount)
    if (const std::size_t place = first_from(at); place < at + L::kCount) return place;
  // The last vector ends at the array's end `size`, so some of its elements may lie before the search's start or may
  // have been searched already. A match before the start is not a result.
  if (at < size && size >= front + L::kCount)
    if (const std::size_t place = first_from(size - L::kCount); place >= start) return place;
  while (at < size && !found(element, at)) ++at;
  return at;
}

}  // namespace heed
