#include "heed/text/moses/moses_rules.h"

#include <algorithm>
#include <array>

#include "heed/text/strings/scan.h"
#include "heed/text/strings/unicode.h"

namespace heed {
namespace {

/// Returns a table of the bytes that collapse_space() can copy without decoding a character: all bytes but ASCII white
/// space, control characters, and the first bytes of other white space in UTF-8 (U+0085, U+00A0, U+1680, U+2000 to
/// U+205F, U+3000).
constexpr std::array<bool, 256> plain_bytes() {
  std::array<bool, 256> table{};
  for (unsigned c = '!'; c < 256; ++c) table[c] = c != 0xC2 && c != 0xE1 && c != 0xE2 && c != 0xE3;
  return table;
}
constexpr auto kPlain = plain_bytes();

/// Puts a space before and behind each occurrence of `part` in `text`, unless a lower-case letter follows the
/// occurrence.
void separate_unless_before_lowercase(std::string& text, std::string_view part) {
  std::size_t found = text.find(part);
  if (found == std::string::npos) return;
  std::string out;
  std::size_t copied = 0;
  for (; found != std::string::npos; found = text.find(part, copied)) {
    const std::size_t end = found + part.size();
    out.append(text, copied, found - copied);
    if (end < text.size() && is_in(code_point_at(text, end), char_class::lowercase_letter))
      out.append(part);
    else
      out.append(1, ' ').append(part).append(1, ' ');
    copied = end;
  }
  text = out.append(text, copied);
}

// The two parts of the placeholder that stands for a run of n >= 2 full stops: n - 1 times "DOT", then "DOTMULTI".
// Three full stops become DOTDOTDOTMULTI.
constexpr std::string_view kMark = "DOTMULTI", kPerDot = "DOT";

/// Replaces each run of n >= 2 full stops by a space, the word "DOTMULTI" and n - 1 full stops. tokenizer.perl makes
/// its placeholder of a run by two substitutions, of which this is the first.
std::string mark_dot_runs(std::string_view text) {
  std::string out;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t run = std::min(text.find("..", at), text.size());
    const std::size_t end = std::min(text.find_first_not_of('.', run), text.size());
    out.append(text.substr(at, run - at));
    if (run < end) out.append(1, ' ').append(kMark).append(end - run - 1, '.');
    at = end;
  }
  return out;
}

/// The rules by which tokenizer.perl puts spaces around an apostrophe. The characters before and after the apostrophe
/// decide which rule matches. Two rules may insert the same spaces, but are still different rules: the match of a rule
/// uses up the characters around the apostrophe only for later matches of the same rule.
enum class ApostropheRule { none, between_others, before_letter, after_letter, between_letters, plural_of_number };
constexpr std::size_t kApostropheRules = 6;

/// Returns the rule of tokenizer.perl for an apostrophe that stands between two characters. `before` and `after` are
/// the char_class bits of these characters; `style` depends on the language.
ApostropheRule apostrophe_rule(std::uint16_t before, std::uint16_t after, Apostrophes style) {
  const bool letter_before = before & char_class::alphabetic, letter_after = after & char_class::alphabetic;
  if (letter_before && letter_after)
    return style == Apostrophes::inside ? ApostropheRule::none : ApostropheRule::between_letters;
  if (letter_before) return ApostropheRule::after_letter;
  if (!letter_after) return ApostropheRule::between_others;
  if (style == Apostrophes::right && (before & char_class::number)) return ApostropheRule::none;
  return ApostropheRule::before_letter;
}

/// Appends an apostrophe to `out`, with a space before or behind it where `rule` and `style` (the language) ask for a
/// space.
void append_apostrophe(ApostropheRule rule, Apostrophes style, std::string& out) {
  const bool joined_right = rule == ApostropheRule::plural_of_number ||
                            (rule == ApostropheRule::between_letters && style == Apostrophes::right);
  const bool joined_left = rule == ApostropheRule::between_letters && style == Apostrophes::left;
  if (rule == ApostropheRule::none)
    out += '\'';
  else
    out += joined_right ? " '" : joined_left ? "' " : " ' ";
}

/// An entity of Moses, such as &quot;, and the character for which the entity stands.
struct Entity {
  std::string_view name;
  char character;
};
/// All entities of Moses. The first eight are those that escape_special() writes; the others are older names, which
/// only unescape_special() reads. If a character has two entities, escape_special() writes the first one.
constexpr Entity kEntities[] = {{"&amp;", '&'},   {"&#124;", '|'}, {"&lt;", '<'},  {"&gt;", '>'},
                                {"&apos;", '\''}, {"&quot;", '"'}, {"&#91;", '['}, {"&#93;", ']'},
                                {"&bar;", '|'},   {"&bra;", '['},  {"&ket;", ']'}};

/// Returns a table with an entry for each byte: whether escape_special() replaces this byte by an entity.
constexpr std::array<bool, 256> escaped_characters() {
  std::array<bool, 256> table{};
  for (const Entity& entity : kEntities) table[static_cast<unsigned char>(entity.character)] = true;
  return table;
}
constexpr auto kEscaped = escaped_characters();

/// The properties of a byte that separate_symbols() needs, as bits. An `attached` byte gets no spaces around it; a
/// `beyond_ascii` byte is part of a character that must be decoded. Each of the other bits sets the member of
/// FoundCharacters that has the same name.
namespace byte_kind {
constexpr std::uint8_t attached = 1, beyond_ascii = 2, hyphen = 4, comma = 8, apostrophe = 16, full_stop = 32,
                       escaped = 64, mark = 128;
}

/// Returns a table that holds the bits of the namespace byte_kind for each of the 256 bytes.
constexpr std::array<std::uint8_t, 256> byte_kinds() {
  std::array<std::uint8_t, 256> table{};
  for (unsigned c = 0; c < 128; ++c) {
    if ((unicode_detail::kAsciiClasses[c] & (char_class::alphanumeric | char_class::space)) != 0)
      table[c] = byte_kind::attached;
    if (kEscaped[c]) table[c] |= byte_kind::escaped;
  }
  for (unsigned c = 128; c < 256; ++c) table[c] = byte_kind::beyond_ascii;
  table['`'] |= byte_kind::attached;
  table['-'] |= byte_kind::attached | byte_kind::hyphen;
  table[','] |= byte_kind::attached | byte_kind::comma;
  table['\''] |= byte_kind::attached | byte_kind::apostrophe;
  table['.'] |= byte_kind::attached | byte_kind::full_stop;
  table['U'] |= byte_kind::mark;  // a text without U cannot hold the placeholder DOTMULTI
  return table;
}
constexpr auto kKinds = byte_kinds();

/// Returns the entity, such as &quot;, that escape_special() writes for the character `c`.
std::string_view entity_of(char c) {
  return std::find_if(std::begin(kEntities), std::end(kEntities), [c](const Entity& e) { return e.character == c; })
      ->name;
}

}  // namespace

Apostrophes apostrophes_of(std::string_view language) {
  if (language == "en") return Apostrophes::right;
  if (language == "fr" || language == "it" || language == "ga" || language == "ca") return Apostrophes::left;
  if (language == "so" || language == "tdt") return Apostrophes::inside;
  return Apostrophes::separate;
}

bool is_tag(std::string_view line) {
  return line.size() > 2 && line.front() == '<' && line.back() == '>';
}

bool collapse_space(std::string_view line, std::string& out) {
  out.resize(line.size());
  char* put = out.data();
  bool after_space = true, deleted = false;
  for (std::size_t at = 0; at < line.size();) {
    for (; at + 8 <= line.size(); at += 8) {
      const std::uint64_t bytes = load_bytes(line.data() + at), spaces = equal_bytes(bytes, ' ');
      // `strange` marks, of eight bytes at once, those beyond ASCII and those below a space (control characters). The
      // subtraction of a space from a smaller byte borrows from the next higher byte, so that this byte may be marked
      // too. A wrong mark is harmless: the eight bytes are then copied one by one.
      const std::uint64_t strange = (bytes | (bytes - kEachByte * ' ')) & (kEachByte * 0x80);
      if (strange || repeats_space(spaces, after_space)) break;
      std::memcpy(put, line.data() + at, 8);
      put += 8;
      after_space = spaces >> 63;
    }
    for (const std::size_t end = std::min(at + 8, line.size()); at < end;) {
      const std::size_t start = at;
      if (kPlain[static_cast<unsigned char>(line[at])]) {
        *put++ = line[at++];
        after_space = false;
        continue;
      }
      const char32_t c = next_code_point(line, at);
      if (is_in(c, char_class::space)) {
        if (!after_space) *put++ = ' ';
        after_space = true;
        continue;
      }
      after_space = false;
      if (c < ' ')
        deleted = true;
      else
        put = std::copy(line.data() + start, line.data() + at, put);
    }
  }
  if (after_space && put > out.data()) --put;
  out.resize(static_cast<std::size_t>(put - out.data()));
  return deleted;
}

void squeeze_spaces(std::string& text) {
  bool after_space = true;
  const char* const end = copy_squeezed(text, text.data(), after_space);
  const auto size = static_cast<std::size_t>(end - text.data());
  text.resize(size > 0 && after_space ? size - 1 : size);
}

FoundCharacters separate_symbols(std::string_view text, std::string_view language, std::string& out) {
  const bool colon_in_words = language == "fi" || language == "sv";
  const bool middle_dot_in_words = language == "ca";
  out.clear();
  unsigned kinds = 0;
  std::size_t copied = 0;
  for (std::size_t at = 0; at < text.size();) {
    const unsigned kind = kKinds[static_cast<unsigned char>(text[at])];
    kinds |= kind;
    if (kind & byte_kind::attached) {
      ++at;
      continue;
    }
    const std::size_t start = at;
    const char32_t c = next_code_point(text, at);
    if ((kind & byte_kind::beyond_ascii) ? is_in(c, char_class::alphanumeric) || (middle_dot_in_words && c == 0xB7)
                                         : colon_in_words && c == ':')
      continue;
    out.append(text.substr(copied, start - copied)).append(1, ' ');
    out.append(text.substr(start, at - start)).append(1, ' ');
    copied = at;
  }
  out.append(text.substr(copied));
  if (colon_in_words) separate_unless_before_lowercase(out, ":");
  if (language == "tdt") separate_unless_before_lowercase(out, "'");
  // tokenizer.perl has a rule for the Catalan middle dot, but Perl reads the UTF-8 bytes of this dot in the script as
  // two Latin-1 characters. The rule therefore applies only where these two characters occur.
  if (middle_dot_in_words) separate_unless_before_lowercase(out, "\u00C2\u00B7");
  return {.hyphen = (kinds & byte_kind::hyphen) != 0,
          .comma = (kinds & byte_kind::comma) != 0,
          .apostrophe = (kinds & byte_kind::apostrophe) != 0,
          .full_stop = (kinds & byte_kind::full_stop) != 0,
          .escaped = (kinds & byte_kind::escaped) != 0,
          .mark = (kinds & byte_kind::mark) != 0};
}

void split_hyphens(std::string_view text, std::string& out) {
  out.clear();
  std::size_t copied = 0;
  for (std::size_t at = text.find('-'); at != text.npos; at = text.find('-', at + 1)) {
    if (at == 0 || at + 1 == text.size() || !is_in(code_point_before(text, at), char_class::alphanumeric) ||
        !is_in(code_point_at(text, at + 1), char_class::alphanumeric))
      continue;
    out.append(text.substr(copied, at - copied)).append(" @-@ ");
    copied = at + 1;
  }
  out.append(text.substr(copied));
}

bool has_multi_dots(std::string_view text, const FoundCharacters& found) {
  return (found.full_stop && contains(text, "..")) || (found.mark && contains(text, kMark));
}

void hide_multi_dots(std::string_view text, std::string& out) {
  const std::string marked = mark_dot_runs(text);
  out.clear();
  std::size_t copied = 0;
  // tokenizer.perl replaces a single full stop behind DOTMULTI together with the character that follows, so that its
  // next match cannot use this character. `consumed` is the offset of the character that the last such match has used.
  std::size_t consumed = std::string::npos;
  for (std::size_t at = marked.find(kMark); at != std::string::npos; at = marked.find(kMark, copied)) {
    const std::size_t dots = at + kMark.size();
    const std::size_t end = std::min(marked.find_first_not_of('.', dots), marked.size());
    const std::size_t count = end - dots;
    out.append(marked, copied, at - copied);
    for (std::size_t i = 0; i < count; ++i) out += kPerDot;
    out += kMark;
    copied = end;
    if (count == 0 || end == marked.size() || (count == 1 && consumed == at)) continue;
    out += ' ';
    if (count == 1) consumed = end;
  }
  out.append(marked, copied);
}

void restore_multi_dots(std::string& text) {
  std::size_t at = text.find(kMark);
  if (at == std::string::npos) return;
  std::string out;
  std::size_t copied = 0;
  for (; at != std::string::npos; at = text.find(kMark, copied)) {
    std::size_t first = at;
    while (first >= copied + kPerDot.size() && text.compare(first - kPerDot.size(), kPerDot.size(), kPerDot) == 0)
      first -= kPerDot.size();
    out.append(text, copied, first - copied).append((at - first) / kPerDot.size() + 1, '.');
    copied = at + kMark.size();
  }
  text = out.append(text, copied);
}

void separate_commas(std::string_view text, std::string& out) {
  out.clear();
  std::size_t copied = 0;
  // Whether tokenizer.perl's rule for a comma without a number before it has matched the previous comma. If so, the
  // rule cannot use that comma again as the character before the current comma.
  bool consumed = false;
  for (std::size_t at = text.find(','); at != text.npos; at = text.find(',', at + 1)) {
    const bool first = at == 0, last = at + 1 == text.size();
    const bool number_before = !first && is_in(code_point_before(text, at), char_class::number);
    const bool number_after = !last && is_in(code_point_at(text, at + 1), char_class::number);
    const bool adjacent = !first && text[at - 1] == ',';
    const bool by_left = !first && !number_before && !(adjacent && consumed);
    out.append(text.substr(copied, at - copied));
    if (by_left || (!last && !number_after))
      out += " , ";
    else
      out += number_before && last ? " ," : ",";
    copied = at + 1;
    consumed = by_left;
  }
  out.append(text.substr(copied));
}

void separate_apostrophes(std::string_view text, Apostrophes style, std::string& out) {
  out.clear();
  std::size_t copied = 0;
  // tokenizer.perl applies each rule for apostrophes in its own pass over the line. A match of a rule uses up the
  // character behind the apostrophe, so that the next match of the same rule must start behind this character.
  // free[rule] is the byte offset at which the used-up character of the rule's last match ends.
  std::array<std::size_t, kApostropheRules> free{};
  for (std::size_t at = text.find('\''); at != text.npos; at = text.find('\'', at + 1)) {
    ApostropheRule rule = ApostropheRule::none;
    if (style == Apostrophes::separate) {
      rule = ApostropheRule::between_others;
    } else if (at > 0 && at + 1 < text.size()) {
      std::size_t end = at + 1;
      const std::uint16_t before = classify(code_point_before(text, at)), after = classify(next_code_point(text, end));
      const auto available = [&](ApostropheRule wanted) { return free[static_cast<std::size_t>(wanted)] < at; };
      rule = apostrophe_rule(before, after, style);
      if (!available(rule)) rule = ApostropheRule::none;
      if (rule == ApostropheRule::none && style == Apostrophes::right && (before & char_class::number) &&
          text[at + 1] == 's' && available(ApostropheRule::plural_of_number))
        rule = ApostropheRule::plural_of_number;
      free[static_cast<std::size_t>(rule)] = end;
    }
    out.append(text.substr(copied, at - copied));
    append_apostrophe(rule, style, out);
    copied = at + 1;
  }
  out.append(text.substr(copied));
}

void separate_full_stops(std::string_view text, const NonbreakingPrefixes& prefixes, std::string& out) {
  while (text.ends_with(' ')) text.remove_suffix(1);
  // Make `out` large enough for the result. A full stop that gets a space before it is followed by a space or by the
  // end of the line, so that at most every second byte of the text adds one byte.
  out.resize(text.size() + text.size() / 2 + 1);
  char* put = out.data();
  std::size_t copied = 0;
  bool after_space = true;
  for (std::size_t at = text.find('.'); at != text.npos; at = text.find('.', at + 1)) {
    const bool last = at + 1 == text.size();
    if (!last && text[at + 1] != ' ') continue;
    const std::size_t start = text.rfind(' ', at) + 1;  // 0 if the text has no space before `at`
    if (start == at || (!last && keeps_full_stop(text.substr(start, at - start), text.substr(at + 2), prefixes)))
      continue;
    put = copy_squeezed(text.substr(copied, at - copied), put, after_space);
    put = copy_squeezed(" .", put, after_space);
    copied = at + 1;
  }
  put = copy_squeezed(text.substr(copied), put, after_space);
  if (after_space && put > out.data()) --put;
  out.resize(static_cast<std::size_t>(put - out.data()));
  if (out.ends_with(".'")) out.replace(out.size() - 2, 2, " . ' ");
}

bool keeps_full_stop(std::string_view word, std::string_view next, const NonbreakingPrefixes& prefixes) {
  if (contains(word, '.')) {
    for (std::size_t at = 0; at < word.size();)
      if (is_in(next_code_point(word, at), char_class::alphabetic)) return true;
  }
  const NonbreakingPrefixes::Kind kind = prefixes.find(word);
  if (kind == NonbreakingPrefixes::Kind::always) return true;
  if (next.empty() || next.front() == ' ') return false;
  if (is_in(code_point_at(next, 0), char_class::lowercase)) return true;
  return kind == NonbreakingPrefixes::Kind::before_number && next.front() >= '0' && next.front() <= '9';
}

void escape_special(std::string_view text, std::string& out) {
  out.clear();
  std::size_t copied = 0;
  for (std::size_t at = 0; at < text.size(); ++at) {
    if (!kEscaped[static_cast<unsigned char>(text[at])]) continue;
    out.append(text.substr(copied, at - copied)).append(entity_of(text[at]));
    copied = at + 1;
  }
  out.append(text.substr(copied));
}

void unescape_special(std::string_view text, std::string& out) {
  out.clear();
  std::size_t copied = 0;
  for (std::size_t at = text.find('&'); at != text.npos; at = text.find('&', std::max(copied, at + 1))) {
    std::size_t end = at;
    const char c = entity_at(text, end);
    if (c == 0) continue;
    out.append(text.substr(copied, at - copied)).append(1, c);
    copied = end;
  }
  out.append(text.substr(copied));
}

char entity_at(std::string_view text, std::size_t& at) {
  for (const Entity& entity : kEntities) {
    if (!text.substr(at).starts_with(entity.name)) continue;
    at += entity.name.size();
    return entity.character;
  }
  return 0;
}

}  // namespace heed
