#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>

namespace heed {

/// Sets of code points as Perl 5.36 names them (Unicode 14), one bit each. Code points that a later Unicode version
/// assigned count as unassigned, so that a text gets the same tokens whatever ICU the program is linked with.
namespace char_class {
constexpr std::uint16_t alphabetic = 1 << 0;        ///< \p{IsAlpha}
constexpr std::uint16_t alphanumeric = 1 << 1;      ///< \p{IsAlnum}: alphabetic or a decimal digit
constexpr std::uint16_t number = 1 << 2;            ///< \p{IsN}: general category Nd, Nl or No (one half is one)
constexpr std::uint16_t lowercase = 1 << 3;         ///< \p{IsLower}: the property Lowercase
constexpr std::uint16_t lowercase_letter = 1 << 4;  ///< \p{Ll}: the general category
constexpr std::uint16_t space = 1 << 5;             ///< \s: White_Space
constexpr std::uint16_t currency = 1 << 6;          ///< \p{IsSc}
constexpr std::uint16_t punctuation = 1 << 7;       ///< [[:punct:]]: general category P, and ASCII's $+<=>^`|~
constexpr std::uint16_t other = 1 << 8;             ///< \p{C}: control, format, private, unassigned, surrogate
constexpr std::uint16_t cased_letter = 1 << 9;      ///< \p{Ll}, \p{Lu} or \p{Lt}: the general category
constexpr std::uint16_t other_symbol = 1 << 10;     ///< \p{So}
}  // namespace char_class

namespace unicode_detail {

constexpr std::array<std::uint16_t, 128> ascii_classes() {
  using namespace char_class;
  std::array<std::uint16_t, 128> table{};
  for (unsigned c = 0; c < 128; ++c) {
    if (c == ' ' || (c >= '\t' && c <= '\r'))
      table[c] = c == ' ' ? space : space | other;
    else if (c < ' ' || c == 127)
      table[c] = other;
    else if (c >= '0' && c <= '9')
      table[c] = alphanumeric | number;
    else if (c >= 'A' && c <= 'Z')
      table[c] = alphabetic | alphanumeric | cased_letter;
    else if (c >= 'a' && c <= 'z')
      table[c] = alphabetic | alphanumeric | lowercase | lowercase_letter | cased_letter;
    else
      table[c] = c == '$' ? punctuation | currency : punctuation;
  }
  return table;
}

inline constexpr auto kAsciiClasses = ascii_classes();
std::uint16_t classify_beyond_ascii(char32_t code_point);

}  // namespace unicode_detail

/// The char_class bits of a code point.
inline std::uint16_t classify(char32_t code_point) {
  return code_point < 0x80 ? unicode_detail::kAsciiClasses[code_point]
                           : unicode_detail::classify_beyond_ascii(code_point);
}

inline bool is_in(char32_t code_point, std::uint16_t classes) {
  return (classify(code_point) & classes) != 0;
}

/// Whether the text is white space (\s) only, or empty.
bool is_blank(std::string_view text);

/// Replaces `out` by the words of a text (maximal runs without white space), joined by single spaces.
void join_words(std::string_view text, std::string& out);

/// Lower-casing as Python's str.lower: full mappings (dotted capital I becomes two code points) and the final sigma.
std::string to_lower(std::string_view text);

/// Lower-casing as Perl's lc: the same mappings without the final-sigma rule.
std::string to_lower_perl(std::string_view text);

/// Upper-casing of one code point as Perl's uc (sharp s becomes SS).
std::string to_upper(char32_t code_point);

/// Unicode normalisation forms C and KC.
std::string to_nfc(std::string_view text);
std::string to_nfkc(std::string_view text);

}  // namespace heed
