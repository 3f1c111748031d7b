#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace heed {

constexpr char32_t kReplacementCharacter = 0xFFFD;

/// Decodes the code point at `text[at]` and moves `at` behind it. Ill-formed bytes (overlong forms, surrogates,
/// values past U+10FFFF, cut sequences) give U+FFFD for each maximal ill-formed part (Unicode 15, section 3.9) and
/// set `*valid` to false where given.
char32_t decode_utf8(std::string_view text, std::size_t& at, bool* valid = nullptr);

/// Appends the UTF-8 form of a code point (not a surrogate, at most U+10FFFF).
void append_utf8(std::string& out, char32_t code_point);

/// Byte offset of the first ill-formed byte, or npos where the text is well-formed.
std::size_t find_invalid_utf8(std::string_view text);

/// The text with every maximal ill-formed part replaced by U+FFFD; `*replaced` counts them.
std::string replace_invalid_utf8(std::string_view text, std::int64_t* replaced = nullptr);

std::u32string to_utf32(std::string_view text);
std::string to_utf8(std::u32string_view text);

/// Number of code points of well-formed text.
std::size_t count_code_points(std::string_view text);

/// Number of terminal columns the text takes: combining marks 0, East Asian wide and emoji 2, others 1.
int display_width(std::string_view text);

}  // namespace heed
