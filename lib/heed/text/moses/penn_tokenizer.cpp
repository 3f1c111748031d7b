#include "heed/text/moses/penn_tokenizer.h"

#include <algorithm>
#include <utility>

#include "heed/text/moses/moses_rules.h"
#include "heed/text/strings/scan.h"
#include "heed/text/strings/unicode.h"

// Each function below is one of the rules of the sed script that the Penn Treebank published, in the order in which
// tokenizer.perl -penn applies them. In tokenizer.perl, a rule is a regular expression with a substitution. A match
// consumes all characters that the expression matches, so that the next match of the same rule cannot use them. The
// functions below therefore leave text unchanged wherever tokenizer.perl does for this reason.

namespace heed {
namespace {

constexpr std::string_view kEllipsis = "_ELLIPSIS_";

constexpr std::pair<std::string_view, std::string_view> kBrackets[] = {{"(", "-LRB-"}, {")", "-RRB-"}, {"[", "-LSB-"},
                                                                       {"]", "-RSB-"}, {"{", "-LCB-"}, {"}", "-RCB-"}};

/// A word that the Penn Treebank splits into two tokens: `first` is the length of the first token in bytes ("cannot"
/// has 3). In a text, the word's first letter may be a capital (also the first letter behind an apostrophe, as in
/// 'Tis).
struct Contraction {
  std::string_view word;
  std::size_t first;
};
constexpr Contraction kContractions[] = {{"cannot", 3}, {"d'ye", 2},   {"gimme", 3}, {"gonna", 3}, {"gotta", 3},
                                         {"lemme", 3},  {"more'n", 4}, {"'tis", 2},  {"'twas", 2}, {"wanna", 3}};

/// Returns whether a quotation mark directly behind the character `c` is an opening mark.
bool opens(char c) {
  return contains(" ([{<", c);
}

/// Makes a quotation mark at the start of the line an opening mark of the Penn Treebank: " becomes ``, and ' becomes `.
/// Puts a space behind an opening mark at the start of the line.
void direct_start_quote(std::string& text) {
  if (text.starts_with("``"))
    text.insert(2, " ");
  else if (text.starts_with('"'))
    text.replace(0, 1, "`` ");
  if (text.starts_with('`') && text.size() > 1 && text[1] != '`') text.insert(1, " ");
  if (text.starts_with('\'')) text.replace(0, 1, "`  ");
}

/// Replaces each `quote` in the text by `to` if the character before it is a space or an opening bracket (see opens()).
/// As in the regular expression of tokenizer.perl, two matches cannot share a character: the character before the quote
/// belongs to the match. If `single` is true, the match also needs a character behind the quote that is not a `, so
/// that the first ` of `` is left alone; this character then belongs to the match too.
void direct_quotes(std::string& text, std::string_view quote, std::string_view to, bool single) {
  std::string out;
  std::size_t copied = 0, free = 0;
  for (auto at = text.find(quote); at != text.npos; at = text.find(quote, at + 1)) {
    const std::size_t end = at + quote.size();
    if (at <= free || !opens(text[at - 1]) || (single && (end == text.size() || text[end] == '`'))) continue;
    out.append(text, copied, at - copied).append(to);
    copied = free = end;
    if (single) next_code_point(text, free);
  }
  if (copied > 0) text = out.append(text, copied);
}

/// Puts a space on both sides of each character for which wanted(character) is true.
template <class Wanted>
void separate(std::string& text, Wanted&& wanted) {
  std::string out;
  out.reserve(text.size() + 16);
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t start = at;
    const char32_t c = next_code_point(text, at);
    const bool apart = wanted(c);
    if (apart) out += ' ';
    out.append(text, start, at - start);
    if (apart) out += ' ';
  }
  text = std::move(out);
}

/// Replaces each `mark` in the text by `to` if before(c) is true for the character before the mark, and after(c) for
/// the character behind the mark. As in a regular expression, the two characters belong to the match, and two matches
/// cannot share a character. The function makes one pass over the text.
template <class Before, class After>
void replace_between(std::string& text, char mark, std::string_view to, Before&& before, After&& after) {
  std::string out;
  std::size_t copied = 0, free = 0;
  for (auto at = text.find(mark); at != text.npos; at = text.find(mark, at + 1)) {
    if (at <= free || at + 1 == text.size() || !before(code_point_before(text, at))) continue;
    std::size_t end = at + 1;
    if (!after(next_code_point(text, end))) continue;
    out.append(text, copied, at - copied).append(to);
    copied = at + 1;
    free = end;
  }
  if (copied > 0) text = out.append(text, copied);
}

/// Puts spaces around each comma, except a comma between two digits.
void separate_penn_commas(std::string& text) {
  const auto number = [](char32_t c) { return is_in(c, char_class::number); };
  const auto other = [](char32_t c) { return !is_in(c, char_class::number); };
  replace_between(text, ',', " , ", other, other);
  replace_between(text, ',', " , ", number, other);
  replace_between(text, ',', " , ", other, number);
}

/// Puts spaces around the full stop that ends the line. Closing brackets, quotation marks and one space may stand
/// behind this full stop.
void separate_last_stop(std::string& text) {
  std::size_t end = text.size();
  if (end > 0 && text[end - 1] == ' ') --end;
  const std::size_t stop = std::string_view(text).substr(0, end).find_last_not_of("])}>\"'");
  if (stop == text.npos || stop == 0 || text[stop] != '.' || text[stop - 1] == '.') return;
  text.resize(end);
  text.insert(stop, 1, ' ').append(1, ' ');
}

/// Puts spaces around each ' that is followed by a space and has no other ' before it.
void separate_closing_quotes(std::string& text) {
  std::string out;
  std::size_t copied = 0, free = 0;
  for (auto at = text.find("' "); at != text.npos; at = text.find("' ", at + 1)) {
    if (at <= free || text[at - 1] == '\'') continue;
    out.append(text, copied, at - copied).append(" ' ");
    copied = free = at + 2;
  }
  if (copied > 0) text = out.append(text, copied);
}

/// Puts a space before the contracted endings 's, 'm, 'd, 'll, 're, 've and n't at the end of a word.
void separate_clitics(std::string& text) {
  std::string out;
  std::size_t copied = 0;
  for (auto at = text.find('\''); at != text.npos; at = text.find('\'', at + 1)) {
    if (at + 2 >= text.size() || !contains("sSmMdD", text[at + 1]) || text[at + 2] != ' ') continue;
    out.append(text, copied, at - copied).append(1, ' ');
    copied = at;
  }
  if (copied > 0) text = out.append(text, copied);
  for (const std::string_view ending : {"'ll ", "'re ", "'ve ", "n't ", "'LL ", "'RE ", "'VE ", "N'T "})
    if (contains(text, ending)) replace_all(text, ending, std::string(" ").append(ending));
}

/// Returns whether `text` starts with `word`. The first letter of `word` may be a capital in `text`.
bool matches(std::string_view text, std::string_view word) {
  const std::size_t letter = word.front() == '\'' ? 1 : 0;
  for (std::size_t i = 0; i < word.size(); ++i)
    if (text[i] != word[i] && (i != letter || text[i] != word[i] - 'a' + 'A')) return false;
  return true;
}

/// If `split` is true, splits each word of the text that equals contraction.word into the contraction's two tokens
/// ("cannot" becomes "can not"); if `split` is false, joins these two tokens to one word. The word must stand between
/// two spaces. As in a regular expression, these spaces belong to the match, and two matches cannot share a space.
void change_words(std::string& text, const Contraction& contraction, bool split) {
  std::string whole = " " + std::string(contraction.word) + " ";
  if (!split) whole.insert(contraction.first + 1, 1, ' ');
  const std::size_t break_at = contraction.first + 1;
  const std::string_view inner = std::string_view(whole).substr(1, whole.size() - 2);
  for (auto at = text.find(' '); at != text.npos && at + whole.size() <= text.size(); at = text.find(' ', at + 1)) {
    if (text[at + whole.size() - 1] != ' ' || !matches(std::string_view(text).substr(at + 1), inner)) continue;
    if (split)
      text.insert(at + break_at, 1, ' ');
    else
      text.erase(at + break_at, 1);
    at += whole.size() - (split ? 0 : 2);
  }
}

/// Replaces `out` by the words of `text`, with a space behind each word. A full stop at the end of a word becomes a
/// word of its own, unless keeps_full_stop() says that the full stop belongs to the word.
void separate_word_stops(std::string_view text, const NonbreakingPrefixes& prefixes, std::string& out) {
  out.clear();
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t end = std::min(text.find(' ', at), text.size());
    const std::string_view word = text.substr(at, end - at);
    const std::string_view next = text.substr(std::min(end + 1, text.size()));
    if (word.size() > 1 && word.ends_with('.') && !keeps_full_stop(word.substr(0, word.size() - 1), next, prefixes))
      out.append(word.substr(0, word.size() - 1)).append(" .");
    else
      out.append(word);
    out += ' ';
    at = end + 1;
  }
}

}  // namespace

void tokenize_penn(std::string_view line, const NonbreakingPrefixes& prefixes, std::string& out) {
  std::string text;
  collapse_space(line, text);
  if (is_in(code_point_at(line, 0), char_class::space)) text.insert(0, 1, ' ');
  if (is_in(code_point_before(line, line.size()), char_class::space)) text += ' ';
  direct_start_quote(text);
  direct_quotes(text, "\"", " `` ", false);
  direct_quotes(text, "``", " `` ", false);
  direct_quotes(text, "`", " ` ", true);
  direct_quotes(text, "'", " ` ", false);
  replace_all(text, "...", " _ELLIPSIS_ ");
  separate_penn_commas(text);
  separate(text, [](char32_t c) {
    return c < 0x80 ? contains(";:@#$%&", static_cast<char>(c))
                    : is_in(c, char_class::currency | char_class::other_symbol);
  });
  const auto word = [](char32_t c) { return is_in(c, char_class::alphanumeric); };
  replace_between(text, '/', " @/@ ", word, word);
  separate_last_stop(text);
  separate(text, [](char32_t c) { return c < 0x80 && contains("?![](){}<>", static_cast<char>(c)); });
  for (const auto& [bracket, name] : kBrackets) replace_all(text, bracket, name);
  replace_all(text, "--", " -- ");
  text.insert(0, 1, ' ').append(1, ' ');
  replace_all(text, "\"", " '' ");
  separate_closing_quotes(text);
  separate_clitics(text);
  for (const Contraction& contraction : kContractions) change_words(text, contraction, true);
  separate_word_stops(text, prefixes, out);
  replace_all(out, kEllipsis, "...");
  squeeze_spaces(out);
}

void undo_penn(std::string& tokens) {
  replace_all(tokens, " @/@ ", "/");
  replace_all(tokens, " n't ", "n't ");
  replace_all(tokens, " N'T ", "N'T ");
  for (const Contraction& contraction : kContractions) change_words(tokens, contraction, false);
  for (const auto& [bracket, name] : kBrackets) replace_all(tokens, name, bracket);
}

}  // namespace heed
