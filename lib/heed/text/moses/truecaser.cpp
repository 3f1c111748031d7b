#include "heed/text/moses/truecaser.h"

#include <algorithm>
#include <deque>
#include <tuple>

#include "heed/base/error.h"
#include "heed/base/line_io.h"
#include "heed/base/streams.h"
#include "heed/text/strings/scan.h"
#include "heed/text/strings/unicode.h"

namespace heed {
namespace {

/// Returns whether the character at the byte offset `at` is white space. Sets `end` to the offset behind the character.
bool space_at(std::string_view line, std::size_t at, std::size_t& end) {
  end = at;
  return is_in(next_code_point(line, end), char_class::space);
}

/// Returns the offset of the first character at or behind `at` that is not white space.
std::size_t skip_space(std::string_view line, std::size_t at) {
  for (std::size_t end = at; at < line.size() && space_at(line, at, end);) at = end;
  return at;
}

/// Returns the offset of the first white space at or behind `at`; the size of the line if no white space follows.
std::size_t find_space(std::string_view line, std::size_t at) {
  for (std::size_t end = at; at < line.size() && !space_at(line, at, end);) at = end;
  return at;
}

/// Returns the offset behind the tag that begins at `at`; npos if no tag begins there. A tag is a <, then a character
/// other than white space, then everything up to the next >.
std::size_t end_of_tag(std::string_view line, std::size_t at) {
  std::size_t second = at + 1, end = 0;
  if (at >= line.size() || line[at] != '<' || second >= line.size() || space_at(line, second, end)) return line.npos;
  const std::size_t close = line.find('>', end);
  return close == line.npos ? close : close + 1;
}

/// Appends the words of `line` (runs without white space) to `words`.
void split_words(std::string_view line, std::vector<std::string_view>& words) {
  for (std::size_t at = skip_space(line, 0); at < line.size();) {
    const std::size_t end = find_space(line, at);
    words.push_back(line.substr(at, end - at));
    at = skip_space(line, end);
  }
}

/// Splits a line into words and tags (<...>), as Moses' truecasing scripts do. An object reuses its memory from line to
/// line.
class MarkedLine {
 public:
  // The words of the line that read() has split, without the line's tags. The views point into that line or into
  // joined_.
  std::vector<std::string_view> words;

  /// Splits `line` into words and tags. The line must stay valid as long as `words` is used.
  void read(std::string_view line) {
    words.clear();
    markup_.clear();
    joined_.clear();
    if (contains(line, '<') || contains(line, '>'))
      split_marked(line);
    else
      split_words(line, words);
  }

  /// Returns the text between the word at the index `word` and the word before it, or the text behind the last word if
  /// `word` is words.size(). This text is a space, or the tags that stand there with a space behind each tag.
  std::string_view before(std::size_t word) const {
    if (!markup_.empty() && !markup_[word].empty())
      return std::string_view(markup_[word]).substr(0, markup_[word].size() - (word == words.size() ? 1 : 0));
    return word == 0 || word == words.size() ? "" : " ";
  }

 private:
  /// Splits a line that contains a < or >, and that may therefore contain tags.
  void split_marked(std::string_view line) {
    markup_.resize(1);
    // A tag ends at a >. A < behind the last > of the line therefore begins no tag.
    const std::size_t last_close = line.rfind('>');
    const auto end_of_tag_at = [&](std::size_t at) {
      return last_close == line.npos || at > last_close ? line.npos : end_of_tag(line, at);
    };
    for (std::size_t at = 0; at < line.size();) {
      const std::size_t start = skip_space(line, at);
      if (start == line.size()) break;
      const std::size_t tag = end_of_tag_at(start);
      if (tag == line.npos) {
        const std::size_t space = find_space(line, start);
        std::size_t end = std::min(line.substr(0, space).find_first_of("<>", start), space);
        if (end == start) end = space;  // a < or > that does not belong to a tag is part of a word
        words.push_back(line.substr(start, end - start));
        markup_.emplace_back();
        at = end;
      } else if (start == at && !words.empty() && words.back().ends_with('|')) {
        // A tag directly behind a word that ends with | is a factor of this word (word|factor), and is joined to the
        // word.
        const std::size_t bars = std::min(line.find_first_not_of('|', tag), line.size());
        const bool joined = !joined_.empty() && words.back().data() == joined_.back().data();
        std::string& word = joined ? joined_.back() : joined_.emplace_back(words.back());
        words.back() = word.append(line.substr(start, bars - start));
        at = bars;
      } else {
        markup_.back().append(line.substr(start, tag - start)).append(1, ' ');
        at = tag;
      }
    }
  }

  // The tags before each word, and then the tags behind the last word of the line; empty for a line without < and >.
  std::vector<std::string> markup_;
  /// The words to which a tag was joined as a factor (see split_marked()). Entries of `words` point into these strings.
  std::deque<std::string> joined_;
};

/// Returns `word` without its first character.
std::string_view skip_character(std::string_view word) {
  std::size_t end = 0;
  next_code_point(word, end);
  return word.substr(end);
}

/// Returns whether `word` has an upper-case, lower-case or title-case letter.
bool has_case(std::string_view word) {
  for (std::size_t at = 0; at < word.size();)
    if (is_in(next_code_point(word, at), char_class::cased_letter)) return true;
  return false;
}

/// Returns whether `word` is a mark such as a full stop, behind which a new sentence starts.
bool ends_sentence(std::string_view word) {
  return word.size() == 1 && contains(".:?!", word.front());
}

/// Returns whether `word` is a bracket or a quote. After such a word at the start of a sentence, the next word is still
/// at the start of the sentence.
bool delays_sentence(std::string_view word) {
  if (word.size() == 1) return contains("([\"'", word.front());
  return word == "&apos;" || word == "&quot;" || word == "&#91;" || word == "&#93;";
}

/// Tells whether the next word of a line starts a sentence. The caller must report each word of the line by pass().
class SentenceStart {
 public:
  explicit operator bool() const { return start_; }
  void pass(std::string_view word) {
    if (ends_sentence(word))
      start_ = true;
    else if (!delays_sentence(word))
      start_ = false;
  }

 private:
  bool start_ = true;
};

}  // namespace

struct Truecaser::Model {
  std::string text;
  // All spellings of words that the truecasing model lists ("Apple", "apple"), and the lower-case form of each word.
  StringIds spellings;
  /// What the model knows about one spelling. `known` says that the model file lists the spelling itself, not only
  /// another spelling of the same word.
  struct Entry {
    bool known = false;
    // The usual spelling of the word, as an index in `spellings`; kNoId if the model does not know the word.
    std::int32_t best = kNoId;
  };
  // The entry of each spelling, at the index that the spelling has in `spellings`.
  std::vector<Entry> entries;

  /// Returns the entry of `spelling`. If `spelling` is new, adds it with an empty entry.
  Entry& entry(std::string_view spelling) {
    const auto number = static_cast<std::size_t>(spellings.add(spelling));
    entries.resize(std::max(entries.size(), number + 1));
    return entries[number];
  }

  /// Reads one line of the model file, such as `the (3/4) The (1)`. Throws Error with the position `where` if the line
  /// is malformed.
  void add_line(std::string_view line, const Position& where) {
    const auto fail = [&] {
      throw Error(where,
                  "is no line of a truecase model, such as 'the (3/4) The (1)' (tokenize --train-truecaser "
                  "makes models)");
    };
    std::vector<std::string_view> fields;
    split_words(line, fields);
    if (fields.size() < 2 || fields.size() % 2 != 0) fail();
    for (std::size_t i = 1; i < fields.size(); i += 2)
      if (!fields[i].starts_with('(') || !fields[i].ends_with(')')) fail();
    for (std::size_t i = 0; i < fields.size(); i += 2) entry(fields[i]).known = true;
    entry(to_lower_perl(fields[0])).best = spellings.find(fields[0]);
  }

  /// Gives every spelling of a word the same usual spelling: copies Entry::best from the entry of the word's lower-case
  /// form to the entries of all spellings.
  void link() {
    for (std::int32_t i = 0; i < spellings.size(); ++i) {
      const std::int32_t lower = spellings.find(to_lower_perl(spellings[i]));
      entries[static_cast<std::size_t>(i)].best =
          lower == kNoId ? kNoId : entries[static_cast<std::size_t>(lower)].best;
    }
  }

  /// Returns the entry of `word`. If no entry has exactly this spelling, returns an entry with the usual spelling of
  /// the word's lower-case form.
  Entry find(std::string_view word) const {
    std::int32_t number = spellings.find(word);
    if (number != kNoId) return entries[static_cast<std::size_t>(number)];
    const std::string lower = to_lower_perl(word);
    if (lower != word) number = spellings.find(lower);
    return {false, number == kNoId ? kNoId : entries[static_cast<std::size_t>(number)].best};
  }
};

Truecaser Truecaser::parse(std::string text, const std::string& where) {
  auto model = std::make_shared<Model>();
  Position position{where};
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t end = std::min(text.find('\n', at), text.size());
    ++position.line;
    model->add_line(std::string_view(text).substr(at, end - at), position);
    at = end + 1;
  }
  if (model->entries.empty()) throw Error(Position{where}, "is empty (tokenize --train-truecaser makes models)");
  model->link();
  model->text = std::move(text);
  Truecaser out;
  out.model_ = std::move(model);
  return out;
}

Truecaser Truecaser::read(const std::string& path) {
  std::string text;
  for (const std::string& line : read_lines(path, InvalidUtf8::fail)) text.append(line).append(1, '\n');
  return parse(std::move(text), input_name(path));
}

const std::string& Truecaser::text() const {
  static const std::string none;
  return model_ ? model_->text : none;
}

void Truecaser::apply(std::string_view tokens, bool asr, std::string& out) const {
  thread_local MarkedLine line;
  line.read(tokens);
  out.clear();
  SentenceStart start;
  std::string lower;
  for (std::size_t i = 0; i < line.words.size(); ++i) {
    std::string_view word = line.words[i];
    const std::size_t bar = std::min(word.find('|'), word.size());
    const std::string_view factors = bar > 0 ? word.substr(bar) : std::string_view();
    word.remove_suffix(factors.size());
    if (asr) word = lower = to_lower_perl(word);
    const Model::Entry entry = model_->find(word);
    const bool keep = entry.best == kNoId || (entry.known && !asr && !start);
    out.append(line.before(i)).append(keep ? word : model_->spellings[entry.best]).append(factors);
    start.pass(word);
  }
  out.append(line.before(line.words.size()));
}

void TruecaseLearner::add(std::string_view tokens) {
  constexpr std::int64_t whole = 10, tenth = 1;
  thread_local MarkedLine line;
  line.read(tokens);
  const auto& words = line.words;
  std::size_t first = 0;
  while (first < words.size() && delays_sentence(words[first])) ++first;
  for (std::size_t i = first; i < words.size(); ++i) {
    if (!has_case(words[i])) continue;
    if (i > first && !ends_sentence(words[i - 1])) {
      count(words[i], whole);
    } else if (first_words_) {
      const std::string_view letter = words[i].substr(0, words[i].size() - skip_character(words[i]).size());
      if (to_lower_perl(letter) == letter)
        count(words[i], whole);
      else if (words.size() == 1)
        count(words[i], tenth);
    }
  }
}

void TruecaseLearner::count(std::string_view word, std::int64_t tenths) {
  const auto number = static_cast<std::size_t>(spellings_.add(word));
  if (number == tenths_.size()) tenths_.push_back(0);
  tenths_[number] += tenths;
}

std::string TruecaseLearner::text() const {
  struct Spelling {
    std::string lower;
    std::string_view word;
    std::int64_t tenths;
  };
  std::vector<Spelling> all;
  for (std::int32_t i = 0; i < spellings_.size(); ++i)
    all.push_back({to_lower_perl(spellings_[i]), spellings_[i], tenths_[static_cast<std::size_t>(i)]});
  std::sort(all.begin(), all.end(), [](const Spelling& a, const Spelling& b) {
    return std::tie(a.lower, b.tenths, b.word) < std::tie(b.lower, a.tenths, a.word);
  });
  const auto number = [](std::int64_t tenths) {
    return std::to_string(tenths / 10) + (tenths % 10 == 0 ? "" : "." + std::to_string(tenths % 10));
  };
  std::string out;
  for (std::size_t best = 0, end = 0; best < all.size(); best = end) {
    std::int64_t sum = 0;
    for (end = best; end < all.size() && all[end].lower == all[best].lower; ++end) sum += all[end].tenths;
    out.append(all[best].word).append(" (").append(number(all[best].tenths)).append("/").append(number(sum)) += ")";
    for (std::size_t i = best + 1; i < end; ++i)
      out.append(" ").append(all[i].word).append(" (").append(number(all[i].tenths)) += ")";
    out += '\n';
  }
  return out;
}

void detruecase(std::string_view tokens, std::string& out) {
  thread_local std::vector<std::string_view> words;
  words.clear();
  split_words(tokens, words);
  out.clear();
  SentenceStart start;
  for (const std::string_view word : words) {
    if (!out.empty()) out += ' ';
    const std::string_view rest = start ? skip_character(word) : word;
    if (start) out += to_upper(code_point_at(word, 0));
    out += rest;
    start.pass(word);
  }
}

}  // namespace heed
