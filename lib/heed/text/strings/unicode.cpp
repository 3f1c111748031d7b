#include "heed/text/strings/unicode.h"

#include <unicode/bytestream.h>
#include <unicode/casemap.h>
#include <unicode/locid.h>
#include <unicode/normalizer2.h>
#include <unicode/uchar.h>
#include <unicode/unistr.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <vector>

#include "heed/base/error.h"
#include "heed/base/lanes.h"
#include "heed/base/utf8.h"
#include "heed/text/strings/scan.h"

namespace heed {
namespace {

// Code points that only a later version of Unicode than version 14 defines count as unassigned.
constexpr std::uint8_t kUnicodeVersion = 14;
// ClassTable, the table of the classes of all code points, consists of pages of 256 code points.
constexpr std::size_t kPageBits = 8, kPageSize = std::size_t{1} << kPageBits;
constexpr std::size_t kPages = 0x110000 >> kPageBits;
using Page = std::array<std::uint16_t, kPageSize>;

/// Returns the classes of a code point (bits of char_class), which the function looks up in the library ICU.
std::uint16_t classify_with_icu(UChar32 c) {
  UVersionInfo age;
  u_charAge(c, age);
  if (age[0] > kUnicodeVersion) return char_class::other;
  const std::uint32_t category = U_GET_GC_MASK(c);
  std::uint16_t bits = 0;
  const auto set = [&bits](bool member, std::uint16_t bit) {
    if (member) bits = static_cast<std::uint16_t>(bits | bit);
  };
  const bool alphabetic = u_hasBinaryProperty(c, UCHAR_ALPHABETIC);
  set(alphabetic, char_class::alphabetic);
  set(alphabetic || (category & U_GC_ND_MASK), char_class::alphanumeric);
  set(category & U_GC_N_MASK, char_class::number);
  set(u_hasBinaryProperty(c, UCHAR_LOWERCASE), char_class::lowercase);
  set(category & U_GC_LL_MASK, char_class::lowercase_letter);
  set(category & U_GC_LC_MASK, char_class::cased_letter);
  set(u_hasBinaryProperty(c, UCHAR_WHITE_SPACE), char_class::space);
  set(category & U_GC_SC_MASK, char_class::currency);
  set(category & U_GC_SO_MASK, char_class::other_symbol);
  set((category & U_GC_P_MASK) || (c < 0x80 && (category & U_GC_S_MASK)), char_class::punctuation);
  set(category & U_GC_C_MASK, char_class::other);
  return bits;
}

/// A table of the classes (bits of char_class) of all code points. The table consists of pages of 256 code points. A
/// page is filled when the first of its code points is looked up, because filling the whole table at the start of a
/// program would take about 60 ms. Several threads may use the table at the same time.
class ClassTable {
 public:
  ClassTable() = default;
  ClassTable(const ClassTable&) = delete;
  ClassTable& operator=(const ClassTable&) = delete;
  ~ClassTable() {
    for (auto& page : pages_) delete page.load(std::memory_order_relaxed);
  }

  std::uint16_t operator[](char32_t c) {
    auto& slot = pages_[c >> kPageBits];
    const Page* page = slot.load(std::memory_order_acquire);
    if (!page) page = fill(slot, c & ~static_cast<char32_t>(kPageSize - 1));
    return (*page)[c & (kPageSize - 1)];
  }

 private:
  /// Makes a page of the classes of the 256 code points from `first` on, and stores the page in `slot`, unless another
  /// thread has stored the same page before. Returns the stored page.
  static const Page* fill(std::atomic<const Page*>& slot, char32_t first) {
    auto* page = new Page;
    for (std::size_t i = 0; i < kPageSize; ++i) (*page)[i] = classify_with_icu(static_cast<UChar32>(first + i));
    const Page* expected = nullptr;
    if (slot.compare_exchange_strong(expected, page, std::memory_order_acq_rel)) return page;
    delete page;  // another thread has stored a page with the same content in the meantime
    return expected;
  }

  std::array<std::atomic<const Page*>, kPages> pages_{};
};

bool is_ascii(std::string_view text) {
  return std::all_of(text.begin(), text.end(), [](char c) { return static_cast<unsigned char>(c) < 0x80; });
}

char ascii_lower(char c) {
  return c >= 'A' && c <= 'Z' ? static_cast<char>(c + ('a' - 'A')) : c;
}

std::string ascii_lower(std::string_view text) {
  std::string out(text);
  for (char& c : out) c = ascii_lower(c);
  return out;
}

icu::StringPiece piece_of(std::string_view text) {
  return {text.data(), static_cast<std::int32_t>(std::min<std::size_t>(text.size(), INT32_MAX))};
}

/// Throws Error if `status`, the result of a call of the library ICU, is a failure. `what` says in the error message
/// what ICU cannot do.
void check(UErrorCode status, const char* what) {
  if (U_FAILURE(status)) throw Error(std::string("ICU cannot ") + what + ": " + u_errorName(status));
}

/// Returns the offset of the character of `text` that holds the byte `at`. In ill-formed text, the result may be the
/// offset of a character that ends before the byte `at`.
std::size_t start_of_character(std::string_view text, std::size_t at) {
  std::size_t start = at;
  while (start > 0 && at - start < 3 && (static_cast<unsigned char>(text[start]) & 0xC0) == 0x80) --start;
  return start;
}

/// Returns the run of characters of `text` around the byte `at` in which no character begins a part that ICU normalises
/// on its own: a combining mark, for example, belongs to the part of the letter before it. The run is empty if the
/// character at the byte `at` begins such a part.
ByteSpan run_of_marks(const icu::Normalizer2& normalizer, std::string_view text, std::size_t at) {
  // Reads the character at `place`, sets `place` to the offset behind it, and returns whether it begins no part.
  const auto is_mark = [&](std::size_t& place) {
    return !normalizer.hasBoundaryBefore(static_cast<UChar32>(next_code_point(text, place)));
  };
  at = start_of_character(text, at);
  ByteSpan run{at, at};
  for (std::size_t next = at; next < text.size() && is_mark(next);) run.end = next;
  while (run.end > at && run.begin > 0) {
    const std::size_t start = start_of_character(text, run.begin - 1);
    std::size_t next = start;
    if (!is_mark(next) || next != run.begin) break;
    run.begin = start;
  }
  return run;
}

/// Appends `marks`, a run of run_of_marks(), to `out` with the characters decomposed and the combining marks in
/// canonical order.
void append_in_order(const icu::Normalizer2& normalizer, std::string_view marks, std::string& out) {
  std::vector<UChar32> decomposed;
  icu::UnicodeString parts;
  for (std::size_t at = 0; at < marks.size();) {
    const auto c = static_cast<UChar32>(next_code_point(marks, at));
    if (!normalizer.getDecomposition(c, parts)) parts = c;
    for (std::int32_t i = 0; i < parts.length(); i = parts.moveIndex32(i, 1)) decomposed.push_back(parts.char32At(i));
  }
  const auto order = [&](UChar32 c) { return normalizer.getCombiningClass(c); };
  for (auto at = decomposed.begin(); at != decomposed.end();) {
    const auto end = std::find_if(at, decomposed.end(), [&](UChar32 c) { return order(c) == 0; });
    std::stable_sort(at, end, [&](UChar32 a, UChar32 b) { return order(a) < order(b); });
    at = end == decomposed.end() ? end : end + 1;
  }
  for (const UChar32 c : decomposed) append_utf8(out, static_cast<char32_t>(c));
}

/// Returns `text` with every long run of combining marks in canonical order, which does not change the normal form of
/// the text. ICU inserts each mark at its place among the marks before it, one place after the other, so that a line of
/// marks in the wrong order would take time in proportion to the square of its length. Returns `text` itself, and
/// leaves `changed` empty, if there is no long run, otherwise a view of `changed`.
std::string_view order_long_runs(const icu::Normalizer2& normalizer, std::string_view text, std::string& changed) {
  // All runs of at least twice this number of bytes are found, and some of the shorter runs.
  constexpr std::size_t step = 128;
  std::size_t copied = 0;
  for (std::size_t at = step; at < text.size(); at += step) {
    const ByteSpan run = run_of_marks(normalizer, text, at);
    if (run.end - run.begin >= step) {
      changed.append(text, copied, run.begin - copied);
      append_in_order(normalizer, text.substr(run.begin, run.end - run.begin), changed);
      copied = run.end;
    }
    at = std::max(at, run.end);
  }
  if (copied == 0) return text;
  return changed.append(text, copied);
}

std::string normalise(const icu::Normalizer2* normalizer, UErrorCode status, std::string_view text) {
  check(status, "load its normalisation data");
  std::string ordered;
  text = order_long_runs(*normalizer, text, ordered);
  std::string out;
  icu::StringByteSink<std::string> sink(&out, static_cast<std::int32_t>(text.size()));
  normalizer->normalizeUTF8(0, piece_of(text), sink, nullptr, status);
  check(status, "normalise a text");
  return out;
}

/// Returns the offset of the first byte of `text` from the offset `at` on (`at` is above 0) that may belong to white
/// space other than a single space character. Returns the text's size if no such byte follows. A result may be wrong,
/// because only the first byte of a character is checked; the caller has to check the whole character.
std::size_t find_irregular_space(std::string_view text, std::size_t at) {
  // Returns whether the byte at `place` may start white space other than a single space. In UTF-8 the first byte of a
  // white-space character is ' ' or below, 0xC2 (as in U+0085), 0xE1 (U+1680), 0xE2 (U+2000) or 0xE3 (U+3000).
  const auto is_irregular = [](auto get, std::size_t place) {
    const auto before = get(place - 1), c = get(place);
    return (c < ' ') | ((c == ' ') & (before == ' ')) | (c == 0xC2) | ((c >= 0xE1) & (c <= 0xE3));
  };
  return find_lane(reinterpret_cast<const std::uint8_t*>(text.data()), text.size(), at, 1, is_irregular);
}

}  // namespace

std::uint16_t unicode_detail::classify_beyond_ascii(char32_t code_point) {
  static ClassTable table;
  return code_point < 0x110000 ? table[code_point] : char_class::other;
}

bool is_blank(std::string_view text) {
  for (std::size_t at = 0; at < text.size();)
    if (!is_in(decode_utf8(text, at), char_class::space)) return false;
  return true;
}

void join_words(std::string_view text, std::string& out) {
  out.clear();
  // Returns the byte offset of the first character of the text from the offset `at` on that is not white space.
  const auto skip_space = [&](std::size_t at) {
    for (std::size_t next = at; next < text.size(); at = next)
      if (!is_in(decode_utf8(text, next), char_class::space)) break;
    return at;
  };
  // In most texts the words are separated by single spaces already. So the loop copies whole sections of the text that
  // contain no white space other than single spaces.
  for (std::size_t start = skip_space(0); start < text.size();) {
    std::size_t end = start, next = start;
    do {
      decode_utf8(text, next);
      end = find_irregular_space(text, next);
      next = end;
    } while (end < text.size() && skip_space(end) == end);
    next = skip_space(end);
    end -= text[end - 1] == ' ';
    if (!out.empty()) out.push_back(' ');
    out.append(text.substr(start, end - start));
    start = next;
  }
}

std::string to_lower(std::string_view text) {
  if (is_ascii(text)) return ascii_lower(text);
  std::string out;
  UErrorCode status = U_ZERO_ERROR;
  icu::StringByteSink<std::string> sink(&out, static_cast<std::int32_t>(text.size()));
  icu::CaseMap::utf8ToLower("", 0, piece_of(text), sink, nullptr, status);
  check(status, "lower-case a text");
  return out;
}

std::string to_lower_perl(std::string_view text) {
  if (is_ascii(text)) return ascii_lower(text);
  constexpr char32_t dotted_capital_i = 0x130;
  std::string out;
  out.reserve(text.size());
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t start = at;
    const char32_t c = decode_utf8(text, at);
    const auto lower = static_cast<char32_t>(u_tolower(static_cast<UChar32>(c)));
    if (c < 0x80)
      out.push_back(ascii_lower(static_cast<char>(c)));
    else if (c == dotted_capital_i)
      out += "i\u0307";
    else if (lower != c)
      append_utf8(out, lower);
    else
      out.append(text.substr(start, at - start));
  }
  return out;
}

std::string to_upper(char32_t code_point) {
  std::string out;
  icu::UnicodeString(static_cast<UChar32>(code_point)).toUpper(icu::Locale::getRoot()).toUTF8String(out);
  return out;
}

std::string to_nfc(std::string_view text) {
  UErrorCode status = U_ZERO_ERROR;
  return normalise(icu::Normalizer2::getNFCInstance(status), status, text);
}

std::string to_nfkc(std::string_view text) {
  UErrorCode status = U_ZERO_ERROR;
  return normalise(icu::Normalizer2::getNFKCInstance(status), status, text);
}

}  // namespace heed
