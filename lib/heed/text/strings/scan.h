#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>

#include "heed/base/utf8.h"

namespace heed {

/// Returns the code point that starts at byte `at`, and moves `at` behind it. Does the same as decode_utf8(), but an
/// ASCII character needs no function call.
inline char32_t next_code_point(std::string_view text, std::size_t& at) {
  const auto byte = static_cast<unsigned char>(text[at]);
  if (byte >= 0x80) return decode_utf8(text, at);
  ++at;
  return byte;
}

/// Returns the code point that starts at byte `at`.
inline char32_t code_point_at(std::string_view text, std::size_t at) {
  return next_code_point(text, at);
}

/// Returns the code point whose last byte is right before byte `end`, which is above 0.
inline char32_t code_point_before(std::string_view text, std::size_t end) {
  std::size_t start = end - 1;
  while (start > 0 && end - start < 4 && (static_cast<unsigned char>(text[start]) & 0xC0) == 0x80) --start;
  return next_code_point(text, start);
}

/// A part of a text: the bytes from offset `begin` to before offset `end`.
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

// The next functions search a text eight bytes at a time: load_bytes() reads eight bytes into one number, and
// equal_bytes() compares all eight with a character at once.

// The value 1 in each of the eight bytes; kEachByte * c has the character c in each byte.
constexpr std::uint64_t kEachByte = 0x0101010101010101u;

/// Returns the eight bytes from `at` on as one number; the first byte is the lowest byte of the number.
inline std::uint64_t load_bytes(const char* at) {
  std::uint64_t bytes = 0;
  std::memcpy(&bytes, at, sizeof bytes);
  return std::endian::native == std::endian::little ? bytes : __builtin_bswap64(bytes);
}

/// Returns a number in which the highest bit of a byte is set if the same byte of `bytes` equals c; all other bits are
/// 0. For the bytes "a b cdef" and c = ' ' the second and the fourth byte of the result are 0x80.
constexpr std::uint64_t equal_bytes(std::uint64_t bytes, char c) {
  constexpr std::uint64_t kLow = 0x7F * kEachByte;
  const std::uint64_t different = bytes ^ (kEachByte * static_cast<unsigned char>(c));
  return ~(((different & kLow) + kLow) | different | kLow);
}

/// Returns the offset of the first space from `at` on, or the text's size if no space follows.
inline std::size_t next_space(std::string_view text, std::size_t at) {
  for (; at + 8 <= text.size(); at += 8)
    if (const std::uint64_t spaces = equal_bytes(load_bytes(text.data() + at), ' '))
      return at + static_cast<std::size_t>(std::countr_zero(spaces)) / 8;
  while (at < text.size() && text[at] != ' ') ++at;
  return at;
}
/// Returns the offset of the first byte from `at` on that is no space, or the text's size if only spaces follow.
inline std::size_t after_spaces(std::string_view text, std::size_t at) {
  while (at < text.size() && text[at] == ' ') ++at;
  return at;
}

/// Returns whether eight bytes contain a space that follows another space. `spaces` is the result of equal_bytes() for
/// these bytes; `after_space` says whether the byte before them is a space.
constexpr bool repeats_space(std::uint64_t spaces, bool after_space) {
  return (spaces & (spaces << 8 | (after_space ? 0x80u : 0u))) != 0;
}

/// Copies a text to `put`, and copies only one space of each run of spaces. `put` may be the text's own memory. A long
/// text can be copied in several calls: `after_space` says whether the text before ended with a space, and is set for
/// the next call. Returns the end of the copy.
char* copy_squeezed(std::string_view text, char* put, bool& after_space);

/// Replaces every occurrence of `from`, which is not empty, by `to`, from left to right. Inserted text is not searched.
void replace_all(std::string& text, std::string_view from, std::string_view to);

}  // namespace heed
