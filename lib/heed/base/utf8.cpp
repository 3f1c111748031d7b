#include "heed/base/utf8.h"

#include <unicode/uchar.h>

#include "heed/base/lanes.h"

namespace heed {
namespace {

/// Returns whether a terminal draws the character over the character before, or not at all. The vowels and final
/// consonants of Korean in decomposed form (conjoining Jamo) are drawn as part of the syllable whose first consonant is
/// before them. A prepended mark, such as U+0600 before a number in Arabic, is a format character that is visible.
bool takes_no_column(UChar32 c) {
  const int type = u_charType(c);
  if (type == U_FORMAT_CHAR) return !u_hasBinaryProperty(c, UCHAR_PREPENDED_CONCATENATION_MARK);
  if (type == U_NON_SPACING_MARK || type == U_ENCLOSING_MARK || type == U_CONTROL_CHAR) return true;
  const int syllable = u_getIntPropertyValue(c, UCHAR_HANGUL_SYLLABLE_TYPE);
  return syllable == U_HST_VOWEL_JAMO || syllable == U_HST_TRAILING_JAMO;
}

/// Returns the first index from `at` on whose byte is not ASCII, or the text's size when all bytes from `at` on are
/// ASCII.
std::size_t skip_ascii(std::string_view text, std::size_t at) {
  return find_lane(reinterpret_cast<const std::uint8_t*>(text.data()), text.size(), at, 0,
                   [](auto get, std::size_t place) { return get(place) >= 0x80; });
}

}  // namespace

char32_t decode_utf8(std::string_view text, std::size_t& at, bool* valid) {
  const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(text[i]); };
  const unsigned char lead = byte(at++);
  if (lead < 0x80) return lead;
  int more = 0;
  char32_t value = 0;
  // The range low .. high of the allowed values of a sequence's second byte. A narrower range excludes overlong forms,
  // surrogates and code points above U+10FFFF.
  unsigned char low = 0x80, high = 0xBF;
  if (lead >= 0xC2 && lead <= 0xDF) {
    more = 1, value = lead & 0x1F;
  } else if (lead >= 0xE0 && lead <= 0xEF) {
    more = 2, value = lead & 0x0F;
    if (lead == 0xE0) low = 0xA0;
    if (lead == 0xED) high = 0x9F;
  } else if (lead >= 0xF0 && lead <= 0xF4) {
    more = 3, value = lead & 0x07;
    if (lead == 0xF0) low = 0x90;
    if (lead == 0xF4) high = 0x8F;
  }
  for (int i = 0; i < more; ++i) {
    if (at >= text.size() || byte(at) < low || byte(at) > high) {
      more = 0;
      break;
    }
    value = (value << 6) | (byte(at++) & 0x3F);
    low = 0x80, high = 0xBF;
  }
  if (more > 0) return value;
  if (valid) *valid = false;
  return kReplacementCharacter;
}

void append_utf8(std::string& out, char32_t c) {
  const auto put = [&](char32_t bits) { out.push_back(static_cast<char>(bits)); };
  if (c < 0x80) {
    put(c);
  } else if (c < 0x800) {
    put(0xC0 | (c >> 6)), put(0x80 | (c & 0x3F));
  } else if (c < 0x10000) {
    put(0xE0 | (c >> 12)), put(0x80 | ((c >> 6) & 0x3F)), put(0x80 | (c & 0x3F));
  } else {
    put(0xF0 | (c >> 18)), put(0x80 | ((c >> 12) & 0x3F)), put(0x80 | ((c >> 6) & 0x3F)), put(0x80 | (c & 0x3F));
  }
}

std::size_t find_invalid_utf8(std::string_view text) {
  for (std::size_t at = 0; at < text.size();) {
    at = skip_ascii(text, at);
    if (at == text.size()) break;
    const std::size_t start = at;
    bool valid = true;
    decode_utf8(text, at, &valid);
    if (!valid) return start;
  }
  return std::string_view::npos;
}

std::string replace_invalid_utf8(std::string_view text, std::int64_t* replaced) {
  std::string out;
  out.reserve(text.size());
  for (std::size_t at = 0; at < text.size();) {
    bool valid = true;
    append_utf8(out, decode_utf8(text, at, &valid));
    if (!valid && replaced) ++*replaced;
  }
  return out;
}

std::u32string to_utf32(std::string_view text) {
  std::u32string out;
  out.reserve(text.size());
  for (std::size_t at = 0; at < text.size();) out.push_back(decode_utf8(text, at));
  return out;
}

std::string to_utf8(std::u32string_view text) {
  std::string out;
  out.reserve(text.size());
  for (char32_t c : text) append_utf8(out, c);
  return out;
}

std::size_t count_code_points(std::string_view text) {
  std::size_t count = 0;
  for (char c : text) count += (static_cast<unsigned char>(c) & 0xC0) != 0x80;
  return count;
}

int display_width(std::string_view text) {
  int width = 0;
  for (std::size_t at = 0; at < text.size();) {
    const auto c = static_cast<UChar32>(decode_utf8(text, at));
    if (takes_no_column(c)) continue;
    const int east_asian = u_getIntPropertyValue(c, UCHAR_EAST_ASIAN_WIDTH);
    width += east_asian == U_EA_FULLWIDTH || east_asian == U_EA_WIDE ? 2 : 1;
  }
  return width;
}

}  // namespace heed
