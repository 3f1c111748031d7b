#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>

namespace heed {

/// Classes of code points, one bit for each class, as Perl 5.36 defines the classes (Unicode 14). A code point that
/// only a later Unicode version defines counts as unassigned. So the tokens that a tokenizer makes of a text do not
/// depend on the installed version of the library ICU.
namespace char_class {
constexpr std::uint16_t alphabetic = 1 << 0;        ///< Perl's \p{IsAlpha}: Unicode's property Alphabetic
constexpr std::uint16_t alphanumeric = 1 << 1;      ///< Perl's \p{IsAlnum}: alphabetic characters and decimal digits
constexpr std::uint16_t number = 1 << 2;            ///< Perl's \p{IsN}: general category Nd, Nl or No (also fractions)
constexpr std::uint16_t lowercase = 1 << 3;         ///< Perl's \p{IsLower}: Unicode's property Lowercase
constexpr std::uint16_t lowercase_letter = 1 << 4;  ///< Perl's \p{Ll}: Unicode's general category Ll
constexpr std::uint16_t space = 1 << 5;             ///< Perl's \s: Unicode's property White_Space
constexpr std::uint16_t currency = 1 << 6;          ///< Perl's \p{IsSc}: currency symbols
constexpr std::uint16_t punctuation = 1 << 7;       ///< Perl's [[:punct:]]: general category P, and ASCII's $+<=>^`|~
constexpr std::uint16_t other = 1 << 8;             ///< Perl's \p{C}: control, format, private, unassigned, surrogate
constexpr std::uint16_t cased_letter = 1 << 9;      ///< general category Ll, Lu or Lt: letters with a case
constexpr std::uint16_t other_symbol = 1 << 10;     ///< Perl's \p{So}: general category So, such as the copyright sign
}  // namespace char_class

namespace unicode_detail {

/// Returns a table with the classes (bits of char_class) of the 128 ASCII characters.
constexpr std::array<std::uint16_t, 128> ascii_classes() {
  using namespace char_class;
  std::array<std::uint16_t, 128> table{};
  for (unsigned c = 0; c < 128; ++c) {
    if (c == ' ' || (c >= '\t' && c <= '\r'))
      table[c] = c == ' ' ? space : space | other;
    else if (c < ' ' || c == 127)
      table[c] = other;
    else if (c >= '0' && c <= '9')
      table[c] = alphanumeric | char_class::number;
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
/// Returns the classes (bits of char_class) of a code point that is 128 or above.
std::uint16_t classify_beyond_ascii(char32_t code_point);

}  // namespace unicode_detail

/// Returns the classes to which a code point belongs, as bits of char_class.
inline std::uint16_t classify(char32_t code_point) {
  return code_point < 0x80 ? unicode_detail::kAsciiClasses[code_point]
                           : unicode_detail::classify_beyond_ascii(code_point);
}

/// Returns whether a code point belongs to one of the given classes (bits of char_class).
inline bool is_in(char32_t code_point, std::uint16_t classes) {
  return (classify(code_point) & classes) != 0;
}

/// Returns whether a text is empty or consists only of white space (Perl's \s).
bool is_blank(std::string_view text);

/// Replaces `out` by the words of a text, joined by single spaces. A word is a longest run of characters that are not
/// white space.
void join_words(std::string_view text, std::string& out);

/// Returns a text in lower case as Python's str.lower does: a capital I with a dot becomes two code points, and a Greek
/// capital sigma at the end of a word becomes a final sigma.
std::string to_lower(std::string_view text);

/// Returns a text in lower case as Perl's lc does. The result differs from to_lower() only for a Greek capital sigma at
/// the end of a word, which Perl's lc does not make a final sigma.
std::string to_lower_perl(std::string_view text);

/// Returns a code point in upper case as Perl's uc does, so that a German sharp s becomes SS.
std::string to_upper(char32_t code_point);

/// to_nfc() returns a text in Unicode's normalisation form NFC, and to_nfkc() in the form NFKC.
std::string to_nfc(std::string_view text);
std::string to_nfkc(std::string_view text);

}  // namespace heed
