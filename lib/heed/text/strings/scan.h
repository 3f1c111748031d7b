#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>

#include "heed/base/utf8.h"

namespace heed {

/// decode_utf8 with its ASCII case inline.
inline char32_t next_code_point(std::string_view text, std::size_t& at) {
  const auto byte = static_cast<unsigned char>(text[at]);
  if (byte >= 0x80) return decode_utf8(text, at);
  ++at;
  return byte;
}

inline char32_t code_point_at(std::string_view text, std::size_t at) {
  return next_code_point(text, at);
}

/// The code point that ends at byte `end` (> 0).
inline char32_t code_point_before(std::string_view text, std::size_t end) {
  std::size_t start = end - 1;
  while (start > 0 && end - start < 4 && (static_cast<unsigned char>(text[start]) & 0xC0) == 0x80) --start;
  return next_code_point(text, start);
}

/// Bytes of a text from `begin` to before `end`.
struct ByteSpan {
  std::size_t begin = 0, end = 0;
  bool operator==(const ByteSpan&) const = default;
};

inline bool contains(std::string_view text, char c) {
  return text.find(c) != std::string_view::npos;
}
inline bool contains(std::string_view text, std::string_view part) {
  return text.find(part) != std::string_view::npos;
}

// Eight bytes of a text at a time.

constexpr std::uint64_t kEachByte = 0x0101010101010101u;

/// Eight bytes as a number, the first one lowest.
inline std::uint64_t load_bytes(const char* at) {
  std::uint64_t bytes = 0;
  std::memcpy(&bytes, at, sizeof bytes);
  return std::endian::native == std::endian::little ? bytes : __builtin_bswap64(bytes);
}

/// The highest bit of each byte that is c.
constexpr std::uint64_t equal_bytes(std::uint64_t bytes, char c) {
  constexpr std::uint64_t kLow = 0x7F * kEachByte;
  const std::uint64_t different = bytes ^ (kEachByte * static_cast<unsigned char>(c));
  return ~(((different & kLow) + kLow) | different | kLow);
}

/// The first space at `at` or behind it; the text's size where there is none.
inline std::size_t next_space(std::string_view text, std::size_t at) {
  for (; at + 8 <= text.size(); at += 8)
    if (const std::uint64_t spaces = equal_bytes(load_bytes(text.data() + at), ' '))
      return at + static_cast<std::size_t>(std::countr_zero(spaces)) / 8;
  while (at < text.size() && text[at] != ' ') ++at;
  return at;
}
/// The first byte at `at` or behind it that is no space, likewise.
inline std::size_t after_spaces(std::string_view text, std::size_t at) {
  while (at < text.size() && text[at] == ' ') ++at;
  return at;
}

/// Of the spaces among eight bytes, as equal_bytes() tells them: whether one follows another, or is the first byte
/// `after_space`.
constexpr bool repeats_space(std::uint64_t spaces, bool after_space) {
  return (spaces & (spaces << 8 | (after_space ? 0x80u : 0u))) != 0;
}

/// Copies a text to `put`, which may be the text's own place, one space for each run of spaces; none where the text
/// before ended `after_space`, which is kept up to date. Returns the end of the copy.
char* copy_squeezed(std::string_view text, char* put, bool& after_space);

/// Every `from` (not empty) becomes `to`, left to right; what is put in is not read again.
void replace_all(std::string& text, std::string_view from, std::string_view to);

}  // namespace heed
