#include "heed/text/scoring/tercom.h"

#include "heed/base/ascii.h"
#include "heed/base/utf8.h"
#include "heed/text/strings/scan.h"
#include "heed/text/strings/unicode.h"

namespace heed {
namespace {

/// Returns whether `c` is a full stop or a comma. The tokeniser of Tercom (the original program for TER) separates
/// these marks from words, but not within numbers.
bool is_stop(char c) {
  return c == '.' || c == ',';
}

/// Returns whether the option `normalized` puts a space on both sides of `c`: true for the space and for all ASCII
/// marks except the apostrophe, the comma, the hyphen and the full stop.
bool is_split_mark(char c) {
  return (c >= ' ' && c <= '&') || (c >= '(' && c <= '+') || c == '/' || (c >= ':' && c <= '@') ||
         (c >= '[' && c <= '`') || (c >= '{' && c <= '~');
}

/// Returns whether the option `no_punct` removes the character `c` from the line.
bool is_removed_mark(char c) {
  return std::string_view(".,?:;!\"()").find(c) != std::string_view::npos;
}

bool is_between(char32_t c, char32_t first, char32_t last) {
  return c >= first && c <= last;
}

/// Returns whether `c` is a Chinese character (or stroke or radical) that becomes a separate word. The range from
/// U+3200 on is meant for enclosed letters, but also includes the Chinese characters of Extension A, as in sacreBLEU.
bool is_split_asian(char32_t c) {
  return is_between(c, 0x2E80, 0x2EFF) || is_between(c, 0x31C0, 0x31EF) || is_between(c, 0x3200, 0x4DBF) ||
         is_between(c, 0x4E00, 0x9FFF) || is_between(c, 0xF900, 0xFAFF) || is_between(c, 0xFE30, 0xFE4F);
}

bool is_asian_punctuation(char32_t c) {
  return c == 0x3001 || c == 0x3002 || is_between(c, 0x3008, 0x3011) || is_between(c, 0x3014, 0x301F) ||
         is_between(c, 0xFF61, 0xFF65) || c == 0x30FB || c == 0xFF0E || c == 0xFF0C || c == 0xFF1F || c == 0xFF1A ||
         c == 0xFF1B || c == 0xFF01 || c == 0xFF02 || c == 0xFF08 || c == 0xFF09;
}

}  // namespace

const std::vector<std::string_view>& TercomTokenizer::tokens(std::string_view line) {
  prepare(line);
  return splitter_.tokens(text_);
}

const std::vector<std::string_view>& TercomTokenizer::tokens_of_tokens(std::string_view line) {
  if (!options_.normalized) return tokens(line);  // without `normalized`, tokenising the words again changes nothing
  std::string joined;
  for (const std::string_view token : tokens(line)) joined.append(joined.empty() ? "" : " ").append(token);
  return tokens(joined);
}

void TercomTokenizer::prepare(std::string_view line) {
  text_ = options_.case_sensitive ? std::string(line) : to_lower(line);
  if (text_.empty()) return;
  if (options_.normalized) {
    normalize();
    if (options_.asian_support) normalize_asian();
  }
  if (options_.no_punct) remove_punctuation();
}

// Applies the rules of Tercom (the original program for TER) to text_, with a space at both ends of the line. In the
// notation of this list, D is a digit, X any character but a digit, S a full stop or comma:
//   1. entities become characters
//   2. mark -> " mark "
//   3. "'s " -> " 's "
//   4. X S -> "X S "
//   5. S X -> " S X"
//   6. D - -> "D - "
// A match consumes its characters: the next match of the same rule starts behind them. sacreBLEU also has a rule that
// splits Japanese kana; the rule never applies, because it needs a kana at the very start of the line, where the added
// space is.
void TercomTokenizer::normalize() {
  for (const auto& [entity, mark] :
       {std::pair<std::string_view, std::string_view>{"&quot;", "\""}, {"&amp;", "&"}, {"&lt;", "<"}, {"&gt;", ">"}})
    replace_all(text_, entity, mark);
  next_ = " ";
  for (const char c : text_) {
    if (is_split_mark(c))
      next_.append({' ', c, ' '});
    else
      next_ += c;
  }
  next_ += "   ";
  replace_all(next_, "'s ", " 's ");

  text_.clear();
  for (std::size_t i = 0; i < next_.size(); ++i) {
    text_ += next_[i];
    if (!is_ascii_digit(next_[i]) && i + 1 < next_.size() && is_stop(next_[i + 1])) {
      text_.append({' ', next_[i + 1], ' '});
      ++i;
    }
  }
  next_.clear();
  for (std::size_t i = 0; i < text_.size(); ++i) {
    if (is_stop(text_[i]) && i + 1 < text_.size() && !is_ascii_digit(text_[i + 1])) {
      next_.append({' ', text_[i], ' ', text_[i + 1]});
      ++i;
    } else {
      next_ += text_[i];
    }
  }
  text_.clear();
  for (std::size_t i = 0; i < next_.size(); ++i) {
    text_ += next_[i];
    if (is_ascii_digit(next_[i]) && i + 1 < next_.size() && next_[i + 1] == '-') {
      text_ += " - ";
      ++i;
    }
  }
}

void TercomTokenizer::normalize_asian() {
  next_.clear();
  for (std::size_t at = 0; at < text_.size();) {
    const std::size_t start = at;
    const char32_t c = decode_utf8(text_, at);
    const bool split = is_split_asian(c) || is_asian_punctuation(c);
    if (split) next_ += ' ';
    next_.append(text_, start, at - start);
    if (split) next_ += ' ';
  }
  text_.swap(next_);
}

void TercomTokenizer::remove_punctuation() {
  next_.clear();
  for (std::size_t at = 0; at < text_.size();) {
    const std::size_t start = at;
    const char32_t c = decode_utf8(text_, at);
    if (c < 0x80 ? is_removed_mark(text_[start]) : options_.asian_support && is_asian_punctuation(c)) continue;
    next_.append(text_, start, at - start);
  }
  text_.swap(next_);
}

}  // namespace heed
