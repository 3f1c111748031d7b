#include "heed/text/moses/punctuation.h"

#include <algorithm>
#include <utility>

#include "heed/base/ascii.h"
#include "heed/text/strings/scan.h"
#include "heed/text/strings/unicode.h"

namespace heed {
namespace {

bool is_letter(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

struct Replacement {
  std::string_view from, to;
};

/// Applies the replacements to the whole line, one replacement after the other.
template <std::size_t N>
void replace_each(std::string& line, const Replacement (&replacements)[N]) {
  for (const auto& [from, to] : replacements) replace_all(line, from, to);
}

/// Replaces each run of spaces in the line by a single space.
void single_spaces(std::string& line) {
  line.erase(std::unique(line.begin(), line.end(), [](char a, char b) { return a == ' ' && b == ' '; }), line.end());
}

/// Replaces each `between` in the line by `to` if wanted(byte) is true for the byte before it and for the byte behind
/// it. As in a regular expression, these two bytes belong to the match: no byte can be behind one replaced text and
/// before the next one.
template <class Wanted>
void replace_between(std::string& line, std::string_view between, std::string_view to, Wanted&& wanted) {
  std::string out;
  std::size_t copied = 0, free = 0;
  for (auto at = line.find(between); at != line.npos; at = line.find(between, at + 1)) {
    const std::size_t end = at + between.size();
    if (at < free + 1 || end >= line.size() || !wanted(line[at - 1]) || !wanted(line[end])) continue;
    out.append(line, copied, at - copied).append(to);
    copied = end;
    free = end + 1;
  }
  if (copied > 0) line = out.append(line, copied);
}

/// Removes each space of the line for which wanted(byte before the space, byte behind the space) is true.
template <class Wanted>
void drop_spaces(std::string& line, Wanted&& wanted) {
  std::size_t kept = 0;
  for (std::size_t i = 0; i < line.size(); ++i) {
    const bool drop = line[i] == ' ' && i > 0 && i + 1 < line.size() && wanted(line[i - 1], line[i + 1]);
    if (!drop) line[kept++] = line[i];
  }
  line.resize(kept);
}

/// Puts one space before each opening and behind each closing round bracket, and removes spaces inside the brackets.
/// Then removes the space between a closing bracket and one of the marks .!:?;,
void space_brackets(std::string& line) {
  if (line.find_first_of("()") == line.npos) return single_spaces(line);
  replace_all(line, "(", " (");
  replace_all(line, ")", ") ");
  single_spaces(line);
  drop_spaces(line, [](char before, char after) { return before == ')' && contains(".!:?;,", after); });
  replace_all(line, "( ", "(");
  replace_all(line, " )", ")");
}

/// Moves commas and full stops that follow a quotation mark to the place before the quotation mark, as is usual in
/// English: `",` becomes `,"`.
void quote_behind_stops(std::string& line) {
  for (auto at = line.find('"'); at != line.npos; at = line.find('"', at + 1)) {
    const auto end = std::min(line.find_first_not_of(",.", at + 1), line.size());
    std::rotate(line.begin() + static_cast<std::ptrdiff_t>(at), line.begin() + static_cast<std::ptrdiff_t>(at + 1),
                line.begin() + static_cast<std::ptrdiff_t>(end));
    at = end - 1;
  }
}

/// Moves full stops that stand before a quotation mark to the place behind the mark, as is usual in languages other
/// than English: `."` becomes `".`. The full stops stay if the character < follows the quotation mark directly.
void quote_before_stops(std::string& line) {
  for (auto at = line.find('.'); at != line.npos; at = line.find('.', at)) {
    const auto quote = std::min(line.find_first_not_of('.', at), line.size());
    if (quote == line.size()) return;
    auto end = quote + 1;
    if (line[quote] != '"' || (end < line.size() && line[end] == '<')) {
      at = quote;
      continue;
    }
    std::swap(line[at], line[quote]);
    // In normalize-punctuation.perl, a match also uses up the white space behind the quotation mark and, if possible,
    // one more character. The search for the next full stop begins behind them.
    while (end < line.size() && is_ascii_space(line[end])) ++end;
    at = end < line.size() && line[end] != '<' ? end + 1 : end;
  }
}

/// Replaces each `stop` (a full-width full stop) and the spaces behind it by a full stop and one space.
void replace_stop(std::string& line, std::string_view stop) {
  std::string out;
  std::size_t copied = 0;
  for (auto at = line.find(stop); at != line.npos; at = line.find(stop, copied)) {
    out.append(line, copied, at - copied).append(". ");
    copied = std::min(line.find_first_not_of(' ', at + stop.size()), line.size());
  }
  if (copied > 0) line = out.append(line, copied);
}

constexpr Replacement kQuotesAndDashes[] = {
    {"\u201E", "\""}, {"\u201C", "\""}, {"\u201D", "\""}, {"\u2013", "-"}, {"\u2014", " - "}};
constexpr Replacement kOtherQuotes[] = {{"\u2018", "'"}, {"\u201A", "'"}, {"\u2019", "\""}};
constexpr Replacement kFrenchQuotes[] = {{"\u00A0\u00AB\u00A0", " \""}, {"\u00AB\u00A0", "\""}, {"\u00AB", "\""},
                                         {"\u00A0\u00BB\u00A0", "\" "}, {"\u00A0\u00BB", "\""}, {"\u00BB", "\""}};
constexpr Replacement kNoBreakSpaces[] = {{"\u00A0%", "%"},    {"n\u00BA\u00A0", "n\u00BA "},
                                          {"\u00A0:", ":"},    {"\u00A0\u00BAC", " \u00BAC"},
                                          {"\u00A0cm", " cm"}, {"\u00A0?", "?"},
                                          {"\u00A0!", "!"},    {"\u00A0;", ";"},
                                          {",\u00A0", ", "}};

bool has_bytes_beyond_ascii(std::string_view line) {
  return std::any_of(line.begin(), line.end(), [](char c) { return static_cast<unsigned char>(c) >= 0x80; });
}

}  // namespace

void normalize_punctuation(std::string& line, std::string_view language, bool penn) {
  const bool unicode = has_bytes_beyond_ascii(line);
  replace_all(line, "\r", "");
  space_brackets(line);
  drop_spaces(line, [](char before, char after) { return is_ascii_digit(before) && after == '%'; });
  replace_all(line, " :", ":");
  replace_all(line, " ;", ";");
  if (!penn) {
    std::replace(line.begin(), line.end(), '`', '\'');
    replace_all(line, "''", " \" ");
  }
  if (unicode) replace_each(line, kQuotesAndDashes);
  single_spaces(line);
  if (unicode) {
    replace_all(line, "\u00B4", "'");
    replace_between(line, "\u2018", "'", is_letter);
    replace_between(line, "\u2019", "'", is_letter);
    replace_each(line, kOtherQuotes);
  }
  replace_all(line, "''", "\"");
  if (unicode) {
    replace_all(line, "\u2026", "...");
    replace_each(line, kFrenchQuotes);
    replace_each(line, kNoBreakSpaces);
    single_spaces(line);
  }
  if (language == "en") {
    quote_behind_stops(line);
  } else if (language != "cs" && language != "cz") {
    replace_all(line, ",\"", "\",");
    quote_before_stops(line);
  }
  if (!unicode) return;
  const bool decimal_comma =
      language == "de" || language == "es" || language == "cz" || language == "cs" || language == "fr";
  replace_between(line, "\u00A0", decimal_comma ? "," : ".", is_ascii_digit);
}

void replace_unicode_punctuation(std::string& line) {
  if (!has_bytes_beyond_ascii(line)) return;
  constexpr Replacement before_stop[] = {{"\uFF0C", ","}};
  constexpr Replacement marks[] = {
      {"\u3001", ","},  {"\u201D", "\""}, {"\u201C", "\""},  {"\u2236", ":"}, {"\uFF1A", ":"}, {"\uFF1F", "?"},
      {"\u300A", "\""}, {"\u300B", "\""}, {"\uFF09", ")"},   {"\uFF01", "!"}, {"\uFF08", "("}, {"\uFF1B", ";"},
      {"\uFF11", "1"},  {"\u300D", "\""}, {"\u300C", "\""},  {"\uFF10", "0"}, {"\uFF13", "3"}, {"\uFF12", "2"},
      {"\uFF15", "5"},  {"\uFF16", "6"},  {"\uFF19", "9"},   {"\uFF17", "7"}, {"\uFF18", "8"}, {"\uFF14", "4"},
      {"\uFF5E", "~"},  {"\u2019", "'"},  {"\u2026", "..."}, {"\u2501", "-"}, {"\u3008", "<"}, {"\u3009", ">"},
      {"\u3010", "["},  {"\u3011", "]"},  {"\uFF05", "%"}};
  replace_each(line, before_stop);
  replace_stop(line, "\u3002");
  replace_stop(line, "\uFF0E");
  replace_each(line, marks);
}

void remove_nonprinting(std::string& line) {
  std::string out;
  out.reserve(line.size());
  for (std::size_t at = 0; at < line.size();) {
    const std::size_t start = at;
    if (is_in(next_code_point(line, at), char_class::other))
      out += ' ';
    else
      out.append(line, start, at - start);
  }
  line = std::move(out);
}

}  // namespace heed
