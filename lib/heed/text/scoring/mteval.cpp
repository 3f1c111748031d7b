#include "heed/text/scoring/mteval.h"

#include <unicode/uchar.h>

#include <array>

#include "heed/base/utf8.h"
#include "heed/text/strings/scan.h"

namespace heed {
namespace {

constexpr std::size_t kNowhere = std::string_view::npos;

/// The kind of a byte in the rules of the tokeniser v13a. Every byte of a character beyond ASCII counts as a letter,
/// except the four bytes with which a white space character may begin (maybe_space).
enum class Kind13a : unsigned char { letter, digit, stop, dash, symbol, space, maybe_space };

constexpr std::array<Kind13a, 256> make_kinds_13a() {
  std::array<Kind13a, 256> kinds{};
  const auto set = [&kinds](int first, int last, Kind13a kind) {
    for (int c = first; c <= last; ++c) kinds[static_cast<std::size_t>(c)] = kind;
  };
  // The ranges of ASCII symbols in the rules of mteval-v13a. They leave out the apostrophe, the comma, the hyphen and
  // the full stop.
  set('!', '&', Kind13a::symbol);
  set('(', '+', Kind13a::symbol);
  set('/', '/', Kind13a::symbol);
  set(':', '@', Kind13a::symbol);
  set('[', '`', Kind13a::symbol);
  set('{', '~', Kind13a::symbol);
  set('0', '9', Kind13a::digit);
  set('.', '.', Kind13a::stop);
  set(',', ',', Kind13a::stop);
  set('-', '-', Kind13a::dash);
  set(0x09, 0x0D, Kind13a::space);
  set(0x1C, 0x20, Kind13a::space);
  for (const int lead : {0xC2, 0xE1, 0xE2, 0xE3}) set(lead, lead, Kind13a::maybe_space);
  return kinds;
}

constexpr std::array<Kind13a, 256> kKinds13a = make_kinds_13a();

Kind13a kind_13a(char c) {
  return kKinds13a[static_cast<unsigned char>(c)];
}

/// Returns the byte of `text` at the offset `at`, or 0 if `at` is behind the end of the text.
unsigned char byte_at(std::string_view text, std::size_t at) {
  return at < text.size() ? static_cast<unsigned char>(text[at]) : 0;
}

/// Removes the word <skipped>, joins lines and decodes entities, as the first steps of the tokeniser mteval-v13a do.
/// The entities are decoded in the order of the script: "&amp;lt;" becomes "<", but "&amp;quot;" becomes "&quot;".
void decode_13a(std::string& text) {
  replace_all(text, "<skipped>", "");
  replace_all(text, "-\n", "");
  replace_all(text, "\n", " ");
  replace_all(text, "&quot;", "\"");
  replace_all(text, "&amp;", "&");
  replace_all(text, "&lt;", "<");
  replace_all(text, "&gt;", ">");
}

/// Returns whether sacreBLEU's tokeniser `zh` treats `c` as a Chinese character. sacreBLEU has a mistake in two ranges:
/// it writes code points of five digits with \u, which reads four digits only, so that the ranges become U+2001 to
/// U+2A6D and U+2F81 to U+2FA1. As a result, curly quotes, dashes and the euro sign become tokens of their own, while
/// the Chinese characters of Unicode's Extension B do not.
bool is_chinese(char32_t c) {
  constexpr std::pair<char32_t, char32_t> ranges[] = {
      {0x2001, 0x2A6D}, {0x2E80, 0x2EFF}, {0x2F00, 0x2FDF}, {0x2FF0, 0x2FFF}, {0x3000, 0x303F}, {0x3100, 0x312F},
      {0x31A0, 0x31BF}, {0x31C0, 0x31EF}, {0x3200, 0x33FF}, {0x3400, 0x4DB5}, {0x4E00, 0x9FBB}, {0xF900, 0xFA2D},
      {0xFA30, 0xFA6A}, {0xFA70, 0xFAD9}, {0xFE10, 0xFE1F}, {0xFE30, 0xFE4F}, {0xFF00, 0xFFEF}};
  for (const auto& [first, last] : ranges)
    if (c >= first && c <= last) return true;
  return false;
}

/// The kinds of character in the rules of the international tokeniser (intl), by Unicode's general categories. `start`
/// is the kind of the place before the line, and `end` is the kind of the place behind the line.
enum class KindIntl : unsigned char { start, end, number, punctuation, symbol, space, other };

/// Returns the kind of the character `c` by its Unicode general category. `c` must not be white space.
KindIntl kind_intl(char32_t c) {
  const auto mask = U_GET_GC_MASK(static_cast<UChar32>(c));
  if (mask & U_GC_N_MASK) return KindIntl::number;
  if (mask & U_GC_P_MASK) return KindIntl::punctuation;
  if (mask & U_GC_S_MASK) return KindIntl::symbol;
  return KindIntl::other;
}

std::array<KindIntl, 128> make_ascii_intl() {
  std::array<KindIntl, 128> kinds{};
  for (char32_t c = 0; c < 128; ++c) kinds[c] = kKinds13a[c] == Kind13a::space ? KindIntl::space : kind_intl(c);
  return kinds;
}

/// Reads a text character by character, and returns for each character its kind in the rules of the international
/// tokeniser.
class IntlReader {
 public:
  explicit IntlReader(std::string_view text) : text_(text) {}

  /// Returns the kind of the character at the byte offset `at` of the text, and sets `next` to the offset behind this
  /// character.
  KindIntl read(std::size_t at, std::size_t& next) const {
    static const std::array<KindIntl, 128> ascii = make_ascii_intl();
    next = at;
    if (at >= text_.size()) return KindIntl::end;
    if (const auto byte = byte_at(text_, at); byte < 0x80) {
      ++next;
      return ascii[byte];
    }
    if (const std::size_t length = space_length(text_, at)) {
      next += length;
      return KindIntl::space;
    }
    bool valid = true;
    const char32_t c = decode_utf8(text_, next, &valid);
    return valid ? kind_intl(c) : KindIntl::other;
  }

 private:
  std::string_view text_;
};

}  // namespace

std::size_t space_length(std::string_view text, std::size_t at) {
  const unsigned char first = byte_at(text, at);
  if (first < 0x80) return at < text.size() && kKinds13a[first] == Kind13a::space ? 1 : 0;
  const unsigned char second = byte_at(text, at + 1);
  if (first == 0xC2) return second == 0x85 || second == 0xA0 ? 2 : 0;  // U+0085 next line, U+00A0 no-break space
  const unsigned char third = byte_at(text, at + 2);
  switch (first) {
    case 0xE1:  // U+1680 ogham space mark
      return second == 0x9A && third == 0x80 ? 3 : 0;
    case 0xE2:  // the white space characters U+2000 to U+200A, U+2028, U+2029, U+202F and U+205F
      if (second == 0x80)
        return (third >= 0x80 && third <= 0x8A) || third == 0xA8 || third == 0xA9 || third == 0xAF ? 3 : 0;
      return second == 0x81 && third == 0x9F ? 3 : 0;
    case 0xE3:  // U+3000 ideographic space
      return second == 0x80 && third == 0x80 ? 3 : 0;
    default:
      return 0;
  }
}

std::string_view strip_trailing_space(std::string_view text) {
  for (;;) {
    std::size_t length = 0;
    for (const std::size_t candidate : {1, 2, 3})
      if (text.size() >= candidate && space_length(text, text.size() - candidate) == candidate) length = candidate;
    if (length == 0) return text;
    text.remove_suffix(length);
  }
}

const std::vector<std::string_view>& MtevalTokenizer::tokens(std::string_view line) {
  tokens_.clear();
  switch (mode_) {
    case MtevalMode::v13a:
      if (line.find('&') != kNowhere || line.find('<') != kNowhere || line.find('\n') != kNowhere) {
        decoded_ = line;
        decode_13a(decoded_);
        line = decoded_;
      }
      split_13a(line, true);
      break;
    case MtevalMode::intl:
      split_intl(line);
      break;
    case MtevalMode::character:
      split_characters(line, false);
      break;
    case MtevalMode::chinese:
      split_chinese(line);
      break;
    case MtevalMode::none:
      split_space(line);
      break;
  }
  return tokens_;
}

std::string MtevalTokenizer::line(std::string_view line) {
  if (mode_ == MtevalMode::none) return std::string(line);
  if (mode_ == MtevalMode::character) {
    tokens_.clear();
    split_characters(line, true);
  } else {
    tokens(line);
  }
  std::string out;
  for (std::size_t i = 0; i < tokens_.size(); ++i) {
    if (i > 0) out += ' ';
    out += tokens_[i];
  }
  return out;
}

// Splits `line` by the rules of the tokeniser v13a. The rules in their order, for a line with a space at both ends (D
// is a digit, X any character but a digit, S a full stop or comma):
//   1. symbol -> " symbol "
//   2. X S -> "X S "
//   3. S X -> " S X"
//   4. D - -> "D - "
// A match consumes its characters: the next match of the same rule starts behind them. In a run of several S, rule 2
// therefore matches only every second S: the first, third, ... if the run follows an X, the second, fourth, ... if the
// run follows a D.
//
// The function does all rules in a single pass. An S is a token of its own, unless a digit follows and rule 2 has not
// matched the S; in that case the S, the digit behind it and a digit before it are in the same token. If `padded` is
// false, the line has no spaces at its ends: an S at the start of the line has no X before it, and an S at the end has
// no X behind it.
void MtevalTokenizer::split_13a(std::string_view line, bool padded) {
  std::size_t start = kNowhere;
  const auto finish = [&](std::size_t end) {
    if (start != kNowhere) tokens_.push_back(line.substr(start, end - start));
    start = kNowhere;
  };
  Kind13a previous = Kind13a::space;
  bool taken = false;  // whether the previous character is a full stop or comma that rule 2 has matched
  for (std::size_t i = 0; i < line.size(); ++i) {
    const Kind13a kind = kind_13a(line[i]);
    if (kind == Kind13a::letter) {
      if (start == kNowhere) start = i;
      while (i + 1 < line.size() && kind_13a(line[i + 1]) == Kind13a::letter) ++i;
      previous = kind;
      continue;
    }
    bool alone = kind == Kind13a::symbol || (kind == Kind13a::dash && previous == Kind13a::digit);
    if (kind == Kind13a::stop) {
      taken = (padded || i > 0) && previous != Kind13a::digit && !(previous == Kind13a::stop && taken);
      alone = taken || (i + 1 == line.size() ? padded : kind_13a(line[i + 1]) != Kind13a::digit);
    }
    std::size_t space = kind == Kind13a::space ? 1 : 0;
    if (kind == Kind13a::maybe_space) space = space_length(line, i);
    previous = kind;
    if (space > 0) {
      finish(i);
      i += space - 1;
    } else if (alone) {
      finish(i);
      tokens_.push_back(line.substr(i, 1));
    } else if (start == kNowhere) {
      start = i;
    }
  }
  finish(line.size());
}

// Splits `line` by the rules of the international tokeniser (intl). The rules in their order (N is a number, P a
// punctuation mark, S a symbol of any script; no spaces are added at the ends of the line):
//   1. not-N P -> "not-N P "
//   2. P not-N -> " P not-N"
//   3. S -> " S "
// A match consumes its characters: the next match of the same rule starts behind them. A P at the very start of the
// line has no character before it, and a P at the very end has no character behind it: "1990." keeps its full stop.
void MtevalTokenizer::split_intl(std::string_view line) {
  const IntlReader reader(line);
  std::size_t start = kNowhere;
  const auto finish = [&](std::size_t end) {
    if (start != kNowhere) tokens_.push_back(line.substr(start, end - start));
    start = kNowhere;
  };
  KindIntl previous = KindIntl::start;
  bool taken = false;
  std::size_t next = 0;
  KindIntl kind = reader.read(0, next);
  for (std::size_t at = 0; kind != KindIntl::end;) {
    std::size_t behind_following = 0;
    const KindIntl following = reader.read(next, behind_following);
    bool alone = kind == KindIntl::symbol;
    if (kind == KindIntl::punctuation) {
      taken =
          previous != KindIntl::start && previous != KindIntl::number && !(previous == KindIntl::punctuation && taken);
      alone = taken || (following != KindIntl::end && following != KindIntl::number);
    }
    if (kind == KindIntl::space) {
      finish(at);
    } else if (alone) {
      finish(at);
      tokens_.push_back(line.substr(at, next - at));
    } else if (start == kNowhere) {
      start = at;
    }
    previous = kind;
    kind = following;
    at = next;
    next = behind_following;
  }
  finish(line.size());
}

void MtevalTokenizer::split_chinese(std::string_view line) {
  while (!line.empty() && space_length(line, 0) > 0) line.remove_prefix(space_length(line, 0));
  line = strip_trailing_space(line);
  decoded_.clear();
  for (std::size_t at = 0; at < line.size();) {
    const std::size_t start = at;
    const bool apart = is_chinese(decode_utf8(line, at));
    if (apart) decoded_ += ' ';
    decoded_.append(line, start, at - start);
    if (apart) decoded_ += ' ';
  }
  split_13a(decoded_, false);
}

void MtevalTokenizer::split_characters(std::string_view line, bool keep_space) {
  for (std::size_t at = 0; at < line.size();) {
    std::size_t next = at;
    const std::size_t space = space_length(line, at);
    if (space > 0)
      next += space;
    else
      decode_utf8(line, next);
    if (space == 0 || keep_space) tokens_.push_back(line.substr(at, next - at));
    at = next;
  }
}

void MtevalTokenizer::split_space(std::string_view line) {
  std::size_t start = kNowhere;
  for (std::size_t at = 0; at < line.size();) {
    const std::size_t space = space_length(line, at);
    if (space > 0) {
      if (start != kNowhere) tokens_.push_back(line.substr(start, at - start));
      start = kNowhere;
    } else if (start == kNowhere) {
      start = at;
    }
    at += space > 0 ? space : 1;
  }
  if (start != kNowhere) tokens_.push_back(line.substr(start));
}

}  // namespace heed
