#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>

#include "heed/base/utf8.h"

namespace heed {

/// Returns the code point of `text` (UTF-8) that starts at byte `at`, and sets `at` to the byte after the code point.
/// Does the same as decode_utf8(), but an ASCII character needs no function call.
inline char32_t next_code_point(std::string_view text, std::size_t& at) {
  const auto byte = static_cast<unsigned char>(text[at]);
  if (byte >= 0x80) return decode_utf8(text, at);
  ++at;
  return byte;
}

/// Returns the code point of `text` (UTF-8) that starts at byte `at`.
inline char32_t code_point_at(std::string_view text, std::size_t at) {
  return next_code_point(text, at);
}

/// Returns the code point of `text` (UTF-8) that ends directly before byte `end`. `end` must be above 0.
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

// A number of eight bytes, each with the value 1. The product kEachByte * c has the character c in each of the eight
// bytes.
constexpr std::uint64_t kEachByte = 0x0101010101010101u;

/// Returns the eight bytes at the address `at` as one number; the first byte becomes the lowest byte of the number.
inline std::uint64_t load_bytes(const char* at) {
  std::uint64_t bytes = 0;
  std::memcpy(&bytes, at, sizeof bytes);
  return std::endian::native == std::endian::little ? bytes : __builtin_bswap64(bytes);
}

/// Compares each of the eight bytes of the number `bytes` with the character c. The result has the value 0x80 in each
/// byte that equals c in `bytes`, and 0 in all other bytes. For the bytes "a b cdef" and c = ' ' the second and the
/// fourth byte of the result are 0x80.
constexpr std::uint64_t equal_bytes(std::uint64_t bytes, char c) {
  constexpr std::uint64_t kLow = 0x7F * kEachByte;
  const std::uint64_t different = bytes ^ (kEachByte * static_cast<unsigned char>(c));
  return ~(((different & kLow) + kLow) | different | kLow);
}

/// Returns the byte offset of the first space in `text` from the offset `at` on, or the text's size if no space
/// follows.
inline std::size_t next_space(std::string_view text, std::size_t at) {
  for (; at + 8 <= text.size(); at += 8)
    if (const std::uint64_t spaces = equal_bytes(load_bytes(text.data() + at), ' '))
      return at + static_cast<std::size_t>(std::countr_zero(spaces)) / 8;
  while (at < text.size() && text[at] != ' ') ++at;
  return at;
}
/// Returns the offset of the first byte in `text` from the offset `at` on that is no space, or the text's size if only
/// spaces follow.
inline std::size_t after_spaces(std::string_view text, std::size_t at) {
  while (at < text.size() && text[at] == ' ') ++at;
  return at;
}

/// Returns whether eight bytes of a text contain a space that directly follows another space. `spaces` is the result of
/// equal_bytes(bytes, ' ') for these eight bytes; `after_space` says whether the byte before the eight bytes is a
/// space.
constexpr bool repeats_space(std::uint64_t spaces, bool after_space) {
  return (spaces & (spaces << 8 | (after_space ? 0x80u : 0u))) != 0;
}

/// Copies a text to the address `put`, and copies only one space of each run of spaces. `put` may be the address of the
/// text itself. A long text can be copied in several calls: before a call `after_space` says whether the part of the
/// text before ended with a space, and the call sets `after_space` for the next call. Returns the address behind the
/// copy.
char* copy_squeezed(std::string_view text, char* put, bool& after_space);

/// Replaces in `text` every occurrence of `from`, which is not empty, by `to`, from left to right. The inserted texts
/// are not searched for `from`.
void replace_all(std::string& text, std::string_view from, std::string_view to);

/// Returns a text in a form in which it can be one field of a TSV file: tabs, line ends and backslashes become \t, \n,
/// \r and \\.
std::string tsv_field(std::string_view text);

}  // namespace heed
