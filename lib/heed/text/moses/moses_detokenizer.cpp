#include "heed/text/moses/moses_detokenizer.h"

#include <algorithm>
#include <initializer_list>
#include <utility>
#include <vector>

#include "heed/text/moses/moses_rules.h"
#include "heed/text/moses/penn_tokenizer.h"
#include "heed/text/strings/scan.h"
#include "heed/text/strings/unicode.h"

namespace heed {
namespace {

template <class Predicate>
bool every_character(std::string_view word, Predicate&& wanted) {
  for (std::size_t at = 0; at < word.size();)
    if (!wanted(next_code_point(word, at))) return false;
  return !word.empty();
}

bool starts_with(std::string_view word, std::uint16_t classes) {
  return !word.empty() && is_in(code_point_at(word, 0), classes);
}
bool ends_with(std::string_view word, std::uint16_t classes) {
  return !word.empty() && is_in(code_point_before(word, word.size()), classes);
}

/// Returns whether `c` is in one of the ranges that Moses' detokenizer.perl treats as Chinese, Japanese or Korean text;
/// the ranges include kana, Yi and CJK punctuation.
bool is_cjk(char32_t c) {
  constexpr std::pair<char32_t, char32_t> ranges[] = {{0x1100, 0x11FF}, {0x2E80, 0xA4CF},  {0xA840, 0xA87F},
                                                      {0xAC00, 0xD7AF}, {0xF900, 0xFAFF},  {0xFE30, 0xFE4F},
                                                      {0xFF65, 0xFFDC}, {0x20000, 0x2FFFF}};
  return std::any_of(std::begin(ranges), std::end(ranges), [c](auto r) { return c >= r.first && c <= r.second; });
}

/// Returns whether `word` consists of characters that have no space behind them in plain text: currency signs, opening
/// brackets, ¿ and ¡.
bool is_opening(std::string_view word) {
  return every_character(word, [](char32_t c) {
    return is_in(c, char_class::currency) || c == '(' || c == '[' || c == '{' || c == 0xBF || c == 0xA1;
  });
}

/// Returns whether `word` consists of closing punctuation, such as a comma or a closing bracket, which has no space
/// before it in plain text.
bool is_closing(std::string_view word) {
  return word.find_first_not_of(",.?!:;\\%}])") == word.npos && !word.empty();
}

bool is_number(std::string_view word) {
  return word.find_first_not_of("0123456789") == word.npos && !word.empty();
}

constexpr char32_t kLowQuote = 0x201E, kLeftQuote = 0x201C;

bool is_quotes(std::string_view word) {
  return every_character(
      word, [](char32_t c) { return c == '\'' || c == '"' || c == '`' || c == kLowQuote || c == kLeftQuote; });
}

bool starts_with_ignoring_case(std::string_view word, std::string_view lower) {
  return word.size() >= lower.size() && std::equal(lower.begin(), lower.end(), word.begin(), [](char l, char c) {
           return l == c || (c >= 'A' && c <= 'Z' && c + ('a' - 'A') == l);
         });
}

/// Returns whether `word` is a Finnish case ending, optionally followed by a possessive suffix and a clitic. Such an
/// ending is joined to a word that ends with a colon, such as "EU:".
bool is_finnish_ending(std::string_view word) {
  constexpr std::string_view cases[] = {"N",   "n",    "A",    "a",   "Ä",   "ä",   "ssa", "Ssa", "ssä", "Ssä", "sta",
                                        "stä", "Sta",  "Stä",  "hun", "Hun", "hyn", "Hyn", "han", "Han", "hän", "Hän",
                                        "hön", "Hön",  "un",   "Un",  "yn",  "Yn",  "an",  "An",  "än",  "Än",  "ön",
                                        "Ön",  "seen", "Seen", "lla", "Lla", "llä", "Llä", "lta", "Lta", "ltä", "Ltä",
                                        "lle", "Lle",  "ksi",  "Ksi", "kse", "Kse", "tta", "Tta", "ine", "Ine"};
  constexpr std::string_view possessives[] = {"", "ni", "si", "mme", "nne", "nsa"};
  constexpr std::string_view clitics[] = {"", "ko", "kö", "han", "hän", "pa", "pä", "kaan", "kään", "kin"};
  for (const auto ending : cases) {
    if (!word.starts_with(ending)) continue;
    for (const auto possessive : possessives) {
      if (!word.substr(ending.size()).starts_with(possessive)) continue;
      const auto rest = word.substr(ending.size() + possessive.size());
      if (std::find(std::begin(clitics), std::end(clitics), rest) != std::end(clitics)) return true;
    }
  }
  return false;
}

/// Counts, for each kind of quotation mark, how many of these marks the line has had so far. With an even count, the
/// next mark opens a quotation; with an odd count, the next mark closes a quotation.
class QuoteCounts {
 public:
  int& operator[](std::string_view mark) {
    const auto found = std::find_if(counts_.begin(), counts_.end(), [&](const auto& c) { return c.first == mark; });
    return found != counts_.end() ? found->second : counts_.emplace_back(mark, 0).second;
  }

 private:
  std::vector<std::pair<std::string_view, int>> counts_;
};

/// Joins the words of one line to plain text, with or without a space between two words.
class Joiner {
 public:
  Joiner(std::string_view language, std::vector<std::string_view> words, bool penn)
      : language_(language), words_(std::move(words)), penn_(penn) {}

  std::string join() {
    for (i_ = 0; i_ < words_.size(); ++i_) penn_ ? add_penn(words_[i_]) : add(words_[i_]);
    squeeze_spaces(text_);
    return std::move(text_);
  }

 private:
  bool in(std::initializer_list<std::string_view> languages) const {
    return std::find(languages.begin(), languages.end(), language_) != languages.end();
  }
  /// Returns the word that is `n` places before the current word of the line.
  std::string_view back(std::size_t n) const { return words_[i_ - n]; }
  /// Returns the word that is `n` places behind the current word of the line.
  std::string_view ahead(std::size_t n) const { return words_[i_ + n]; }

  /// Appends `word` to the text with a space on both sides (only behind the word, if the word before was joined to its
  /// right). The next two functions join `word` to the text on its left (no space before the word) or to the text on
  /// its right (no space behind the word).
  void apart(std::string_view word) { put(word, space_, true); }
  void to_the_left(std::string_view word) { put(word, false, true); }
  void to_the_right(std::string_view word) { put(word, space_, false); }
  void put(std::string_view word, bool space_before, bool space_after) {
    if (space_before) text_ += ' ';
    text_ += word;
    space_ = space_after;
  }

  /// Appends `word` to the text, with or without spaces around the word, by the rules of the line's language.
  void add(std::string_view word) {
    if (!word.empty() && is_cjk(code_point_at(word, 0))) {
      const bool follows_cjk = i_ > 0 && !back(1).empty() && is_cjk(code_point_before(back(1), back(1).size()));
      follows_cjk&& language_ != "ko" ? to_the_left(word) : apart(word);
    } else if (is_opening(word)) {
      to_the_right(word);
    } else if (is_closing(word)) {
      if (language_ == "fr" && word.size() == 1 && contains("?!:;\\%", word.front())) text_ += ' ';
      to_the_left(word);
    } else if ((language_ == "en" && is_contraction(word)) || is_czech_decimal(word)) {
      to_the_left(word);
    } else if (is_elision(word)) {
      to_the_right(word);
    } else if (is_czech_hyphen(word)) {
      to_the_right(word);
      text_ += ahead(1);
      ++i_;
    } else if (is_quotes(word)) {
      add_quotes(word);
    } else if (language_ == "fi" && (i_ > 0 ? back(1) : words_.back()).ends_with(':') && is_finnish_ending(word)) {
      to_the_left(to_lower_perl(word));
    } else {
      apart(word);
    }
  }

  /// Appends `word` to the text by the rules that detokenizer.perl has for its option -penn. These rules are the same
  /// for all languages and for CJK text, and do not tell opening from closing quotation marks.
  void add_penn(std::string_view word) {
    if (is_opening(word))
      to_the_right(word);
    else if (is_closing(word) || is_contraction(word))
      to_the_left(word);
    else if (word == "`" || word == "``")
      to_the_right(word.size() == 1 ? "'" : "\"");
    else if (word == "'" || word == "''")
      to_the_left(word.size() == 1 ? "'" : "\"");
    else
      apart(word);
  }

  /// Returns whether `word` is a contraction such as 's or 'll that belongs to the word before it.
  bool is_contraction(std::string_view word) const {
    return i_ > 0 && word.starts_with('\'') && starts_with(word.substr(1), char_class::alphabetic) &&
           ends_with(back(1), char_class::alphanumeric);
  }
  /// Returns whether `word` and the two words before it are a Czech decimal number, such as the three words 3 , 5 (for
  /// 3,5).
  bool is_czech_decimal(std::string_view word) const {
    return language_ == "cs" && i_ > 1 && is_number(back(2)) && (back(1) == "." || back(1) == ",") && is_number(word);
  }
  /// Returns whether `word` is a French or Italian elision, a word that ends with an apostrophe such as l', and the
  /// next word starts with a letter.
  bool is_elision(std::string_view word) const {
    return in({"fr", "it"}) && i_ + 2 <= words_.size() && word.ends_with('\'') &&
           ends_with(word.substr(0, word.size() - 1), char_class::alphabetic) &&
           starts_with(ahead(1), char_class::alphabetic);
  }
  /// Returns whether `word` and the two words behind it are a Czech word with a hyphen, such as e-mail or dá-li.
  bool is_czech_hyphen(std::string_view word) const {
    return language_ == "cs" && i_ + 3 < words_.size() && ends_with(word, char_class::alphabetic) &&
           (ahead(1) == "-" || ahead(1) == "\u2013") &&
           ((ahead(2).size() == 2 && starts_with_ignoring_case(ahead(2), "li")) ||
            starts_with_ignoring_case(ahead(2), "mail"));
  }

  /// Appends the quotation mark `word` to the text without a space on one side: an opening mark is joined to the word
  /// behind it, a closing mark to the word before it.
  void add_quotes(std::string_view word) {
    const bool curly = every_character(word, [](char32_t c) { return c == kLowQuote || c == kLeftQuote; });
    int& count = quotes_[curly ? "\"" : word];
    if (language_ == "cs" && word == "\u201E") count = 0;  // in Czech, this mark always opens a quotation
    if (language_ == "cs" && word == "\u201C") count = 1;  // in Czech, this mark usually closes a quotation
    if (count % 2 == 0 && language_ == "en" && word == "'" && i_ > 0 && back(1).ends_with('s')) {
      to_the_left(word);  // the mark is a possessive apostrophe: the Jones' house
      return;
    }
    count % 2 == 0 ? to_the_right(word) : to_the_left(word);
    ++count;
  }

  std::string_view language_;
  std::vector<std::string_view> words_;
  QuoteCounts quotes_;
  std::string text_;
  std::size_t i_ = 0;
  bool space_ = true, penn_;
};

/// Splits `text` into words at every space. Two spaces in a row make an empty word; spaces at the end of the text make
/// no empty words.
std::vector<std::string_view> split_at_spaces(std::string_view text) {
  while (text.ends_with(' ')) text.remove_suffix(1);
  std::vector<std::string_view> words;
  for (std::size_t at = 0; at <= text.size() && !text.empty();) {
    const std::size_t end = std::min(text.find(' ', at), text.size());
    words.push_back(text.substr(at, end - at));
    at = end + 1;
  }
  return words;
}

}  // namespace

void uppercase_first_letter(std::string& text) {
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t start = at;
    const char32_t c = next_code_point(text, at);
    if (is_in(c, char_class::punctuation | char_class::space)) continue;
    if (is_in(c, char_class::alphabetic)) text.replace(start, at - start, to_upper(c));
    return;
  }
}

MosesDetokenizer::MosesDetokenizer(std::string language, bool unescape, bool penn)
    : language_(std::move(language)), unescape_(unescape), penn_(penn) {}

std::string MosesDetokenizer::detokenize(std::string_view tokens, bool uppercase_first) const {
  if (is_tag(tokens) || is_blank(tokens)) return std::string(tokens);
  std::string line;
  line.reserve(tokens.size() + 2);
  line.append(1, ' ').append(tokens).append(1, ' ');
  replace_all(line, " @-@ ", "-");
  std::string plain;
  if (unescape_)
    unescape_special(line, plain);
  else
    plain = std::move(line);
  if (penn_) undo_penn(plain);
  std::string text = Joiner(language_, split_at_spaces(plain), penn_).join();
  if (uppercase_first) uppercase_first_letter(text);
  return text;
}

}  // namespace heed
