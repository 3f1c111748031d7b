#pragma once

#include <bit>
#include <cstdint>

namespace heed {

/// A bfloat16 number: the upper 16 bits of a float32 (sign, 8 bits of exponent, 7 bits of mantissa).
enum class Bfloat16 : std::uint16_t {};

/// Rounds a float32 to the nearest bfloat16, ties to even. NaN stays NaN.
constexpr Bfloat16 to_bfloat16(float x) {
  const auto bits = std::bit_cast<std::uint32_t>(x);
  if ((bits & 0x7FFFFFFF) > 0x7F800000) return static_cast<Bfloat16>((bits >> 16) | 0x40);
  return static_cast<Bfloat16>((bits + 0x7FFF + ((bits >> 16) & 1)) >> 16);
}

/// Converts a bfloat16 to the float32 of the same value.
constexpr float from_bfloat16(Bfloat16 x) {
  return std::bit_cast<float>(static_cast<std::uint32_t>(x) << 16);
}

/// Rounds a float32 to the nearest value that bfloat16 can represent, and returns the value as float32.
constexpr float round_to_bfloat16(float x) {
  return from_bfloat16(to_bfloat16(x));
}

}  // namespace heed
