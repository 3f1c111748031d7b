#include "heed/text/moses_rules.h"

#include <algorithm>
#include <array>

#include "heed/text/scan.h"
#include "heed/text/unicode.h"

namespace heed {
namespace {

/// ASCII characters that separate_symbols leaves where they are.
constexpr std::array<bool, 128> stay_attached() {
  std::array<bool, 128> table{};
  for (unsigned c = 0; c < 128; ++c)
    table[c] = (unicode_detail::kAsciiClasses[c] & (char_class::alphanumeric | char_class::space)) != 0;
  for (const unsigned char c : {'.', '\'', '`', ',', '-'}) table[c] = true;
  return table;
}
constexpr auto kAttached = stay_attached();

/// Neither white space nor a control character, and a code point of one byte.
constexpr bool is_plain_ascii(char c) {
  return c > ' ' && static_cast<unsigned char>(c) < 0x80;
}

/// A loop without an early end, which compilers turn into a few wide comparisons.
bool has_double_space(std::string_view text) {
  bool found = false;
  for (std::size_t i = 1; i < text.size(); ++i) found |= (text[i - 1] == ' ') & (text[i] == ' ');
  return found;
}

/// Spaces around each `part` that no lower-case letter follows.
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

constexpr std::string_view kMark = "DOTMULTI", kPerDot = "DOT";

/// Each run of n >= 2 full stops becomes a space, the mark and n - 1 full stops.
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

/// How separate_apostrophes treats one apostrophe; several rules put their spaces alike, but a match consumes its
/// neighbours only for the rule it belongs to.
enum class ApostropheRule { none, between_others, before_letter, after_letter, between_letters, plural_of_number };
constexpr std::size_t kApostropheRules = 6;

ApostropheRule apostrophe_rule(std::uint16_t before, std::uint16_t after, Apostrophes style) {
  const bool letter_before = before & char_class::alphabetic, letter_after = after & char_class::alphabetic;
  if (letter_before && letter_after)
    return style == Apostrophes::inside ? ApostropheRule::none : ApostropheRule::between_letters;
  if (letter_before) return ApostropheRule::after_letter;
  if (!letter_after) return ApostropheRule::between_others;
  if (style == Apostrophes::right && (before & char_class::number)) return ApostropheRule::none;
  return ApostropheRule::before_letter;
}

void append_apostrophe(ApostropheRule rule, Apostrophes style, std::string& out) {
  const bool joined_right = rule == ApostropheRule::plural_of_number ||
                            (rule == ApostropheRule::between_letters && style == Apostrophes::right);
  const bool joined_left = rule == ApostropheRule::between_letters && style == Apostrophes::left;
  if (rule == ApostropheRule::none)
    out += '\'';
  else
    out += joined_right ? " '" : joined_left ? "' " : " ' ";
}

struct Entity {
  std::string_view name;
  char character;
};
/// What escape_special writes, and then the older names that unescape_special reads too.
constexpr Entity kEntities[] = {{"&amp;", '&'},   {"&#124;", '|'}, {"&lt;", '<'},  {"&gt;", '>'},
                                {"&apos;", '\''}, {"&quot;", '"'}, {"&#91;", '['}, {"&#93;", ']'},
                                {"&bar;", '|'},   {"&bra;", '['},  {"&ket;", ']'}};

constexpr std::array<bool, 256> escaped_characters() {
  std::array<bool, 256> table{};
  for (const Entity& entity : kEntities) table[static_cast<unsigned char>(entity.character)] = true;
  return table;
}
constexpr auto kEscaped = escaped_characters();

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

void collapse_space(std::string_view line, std::string& out) {
  out.assign(1, ' ');
  bool space = true;
  for (std::size_t at = 0; at < line.size();) {
    const std::size_t start = at;
    // Words with one space between them are copied at once.
    while (at < line.size() && (is_plain_ascii(line[at]) || (line[at] == ' ' && at > start && at + 1 < line.size() &&
                                                             is_plain_ascii(line[at + 1]))))
      ++at;
    if (at > start) {
      out.append(line.substr(start, at - start));
      space = false;
      continue;
    }
    const char32_t c = next_code_point(line, at);
    if (is_in(c, char_class::space)) {
      if (!space) out += ' ';
      space = true;
    } else {
      space = false;
      if (c >= ' ') out.append(line.substr(start, at - start));
    }
  }
  if (!space) out += ' ';
}

void squeeze_spaces(std::string& text) {
  if (!has_double_space(text)) {
    if (text.ends_with(' ')) text.pop_back();
    if (text.starts_with(' ')) text.erase(0, 1);
    return;
  }
  std::size_t kept = 0;
  for (const char c : text)
    if (c != ' ' || (kept > 0 && text[kept - 1] != ' ')) text[kept++] = c;
  if (kept > 0 && text[kept - 1] == ' ') --kept;
  text.resize(kept);
}

void separate_symbols(std::string_view text, std::string_view language, std::string& out) {
  const bool colon_in_words = language == "fi" || language == "sv";
  const bool middle_dot_in_words = language == "ca";
  out.clear();
  for (std::size_t at = 0; at < text.size();) {
    std::size_t end = at;
    while (end < text.size() && static_cast<unsigned char>(text[end]) < 0x80 &&
           kAttached[static_cast<unsigned char>(text[end])])
      ++end;
    out.append(text.substr(at, end - at));
    if (end == text.size()) break;
    at = end;
    const char32_t c = next_code_point(text, at);
    const std::string_view character = text.substr(end, at - end);
    if (is_in(c, char_class::alphanumeric) || (colon_in_words && c == ':') || (middle_dot_in_words && c == 0xB7))
      out.append(character);
    else
      out.append(1, ' ').append(character).append(1, ' ');
  }
  if (colon_in_words) separate_unless_before_lowercase(out, ":");
  if (language == "tdt") separate_unless_before_lowercase(out, "'");
  // The script reads its own middle dot as the two Latin-1 characters of its UTF-8 form, so that only those are split.
  if (middle_dot_in_words) separate_unless_before_lowercase(out, "\u00C2\u00B7");
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

bool has_multi_dots(std::string_view text) {
  return contains(text, "..") || contains(text, kMark);
}

void hide_multi_dots(std::string_view text, std::string& out) {
  const std::string marked = mark_dot_runs(text);
  out.clear();
  std::size_t copied = 0;
  std::size_t consumed = std::string::npos;  // where a match of one full stop has taken the character behind it
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
  bool consumed = false;  // the comma before, directly adjacent, has matched and taken nothing further left
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
  // Each rule is a pass of its own over the line, in which a match takes the character behind its apostrophe: the next
  // match needs another one before its own.
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

void separate_full_stops(std::string_view text, const Prefixes& prefixes, std::string& out) {
  out.clear();
  while (text.ends_with(' ')) text.remove_suffix(1);
  std::size_t copied = 0;
  for (std::size_t at = text.find('.'); at != text.npos; at = text.find('.', at + 1)) {
    const bool last = at + 1 == text.size();
    if (!last && text[at + 1] != ' ') continue;
    const std::size_t start = text.rfind(' ', at) + 1;  // 0 where there is none
    if (start == at || (!last && keeps_full_stop(text.substr(start, at - start), text.substr(at + 2), prefixes)))
      continue;
    out.append(text.substr(copied, at - copied)).append(" .");
    copied = at + 1;
  }
  out.append(text.substr(copied));
  squeeze_spaces(out);
  if (out.ends_with(".'")) out.replace(out.size() - 2, 2, " . ' ");
}

bool keeps_full_stop(std::string_view word, std::string_view next, const Prefixes& prefixes) {
  if (contains(word, '.')) {
    for (std::size_t at = 0; at < word.size();)
      if (is_in(next_code_point(word, at), char_class::alphabetic)) return true;
  }
  const Prefixes::Kind kind = prefixes.find(word);
  if (kind == Prefixes::Kind::always) return true;
  if (next.empty() || next.front() == ' ') return false;
  if (is_in(code_point_at(next, 0), char_class::lowercase)) return true;
  return kind == Prefixes::Kind::before_number && next.front() >= '0' && next.front() <= '9';
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
