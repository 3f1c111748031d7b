#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace heed {

constexpr char32_t kReplacementCharacter = 0xFFFD;

/// Decodes the code point that starts at the byte `text[at]` and moves `at` to the byte behind it. Ill-formed bytes
/// (overlong forms, surrogates, values past U+10FFFF, cut sequences) give one U+FFFD for each maximal ill-formed part
/// (Unicode 15, section 3.9) and set `*valid` to false, unless `valid` is nullptr.
char32_t decode_utf8(std::string_view text, std::size_t& at, bool* valid = nullptr);

/// Appends a code point (not a surrogate, at most U+10FFFF) as UTF-8.
void append_utf8(std::string& out, char32_t code_point);

/// Returns the byte offset of the first ill-formed byte of a text, or std::string_view::npos when the text is
/// well-formed UTF-8.
std::size_t find_invalid_utf8(std::string_view text);

/// Returns the text with U+FFFD in place of every maximal part that is not well-formed UTF-8, and adds the number of
/// these parts to `*replaced` unless `replaced` is nullptr.
std::string replace_invalid_utf8(std::string_view text, std::int64_t* replaced = nullptr);

/// Returns the code points of UTF-8 text, with U+FFFD for each ill-formed part, as decode_utf8() gives them.
std::u32string to_utf32(std::string_view text);
/// Returns code points (no surrogates, at most U+10FFFF) as UTF-8.
std::string to_utf8(std::u32string_view text);

/// Returns the number of code points of well-formed UTF-8 text.
std::size_t count_code_points(std::string_view text);

/// Returns the number of terminal columns that the text takes: 0 for a combining mark and for the vowels and final
/// consonants of decomposed Korean, 2 for East Asian wide characters and emoji, 1 for others.
int display_width(std::string_view text);

}  // namespace heed
