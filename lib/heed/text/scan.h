#pragma once

#include <cstddef>
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

/// Every `from` (not empty) becomes `to`, left to right; what is put in is not read again.
void replace_all(std::string& text, std::string_view from, std::string_view to);

}  // namespace heed
