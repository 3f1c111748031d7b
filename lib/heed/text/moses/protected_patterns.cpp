#include "heed/text/moses/protected_patterns.h"

#include <unicode/regex.h>

#include <algorithm>
#include <charconv>
#include <cstdio>

#include "heed/base/error.h"
#include "heed/text/strings/scan.h"

namespace heed {
namespace {

/// Returns whether `c` is an ASCII letter or digit. Behind a backslash in a regular expression, such a character does
/// not stand for itself (\d, \w).
bool is_word_character(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
}

/// Returns the offset behind the closing bracket of the set [...] or group (...) that opens at the offset `at` of the
/// regular expression `pattern`; npos if the closing bracket is missing.
std::size_t skip_brackets(std::string_view pattern, std::size_t at) {
  int groups = 0, sets = 0;
  for (; at < pattern.size(); ++at) {
    const char c = pattern[at];
    if (c == '\\') {
      ++at;
    } else if (c == '[') {
      ++sets;
    } else if (sets > 0) {
      if (c == ']') --sets;
    } else if (c == '(') {
      ++groups;
    } else if (c == ')') {
      --groups;
    }
    if (groups == 0 && sets == 0) return at + 1;
  }
  return std::string_view::npos;
}

}  // namespace

std::string required_literal(std::string_view pattern) {
  // Gives up if the regular expression has flags such as (?i, which change what its characters match, or escapes of
  // more than one character such as \x41.
  for (const std::string_view hard : {"(?i", "(?x", "(?s", "(?m", "(?d", "(?u", "(?w", "(?-", "(?#", "[]", "[^]", "\\Q",
                                      "\\x", "\\u", "\\U", "\\N", "\\c", "\\0", "\\k"})
    if (contains(pattern, hard)) return {};
  std::string best, run;
  const auto end_run = [&] {
    if (run.size() > best.size()) best = run;
    run.clear();
  };
  for (std::size_t at = 0; at < pattern.size();) {
    const char c = pattern[at];
    if (c == '|') return {};  // gives up: the matches of a|b need not have a string in common
    std::size_t end = at + 1;
    std::string_view literal;
    if (c == '(' || c == '[') {
      end = skip_brackets(pattern, at);
      if (end > pattern.size()) return {};
    } else if (c == '{') {
      end = std::min(pattern.find('}', at), pattern.size() - 1) + 1;
    } else if (c == '\\') {
      if (at + 1 == pattern.size()) return {};
      end = at + 2;
      if (!is_word_character(pattern[at + 1])) literal = pattern.substr(at + 1, 1);
    } else if (!contains(".^$*+?", c)) {
      next_code_point(pattern, end = at);
      literal = pattern.substr(at, end - at);
    }
    const char after = end < pattern.size() ? pattern[end] : ' ';
    if (literal.empty() || after == '*' || after == '?' || after == '{') {
      end_run();
    } else {
      run += literal;
      if (after == '+') end_run();
    }
    at = end;
  }
  end_run();
  return best;
}

/// A protected pattern: the text of the regular expression, a string that every match contains (see
/// required_literal()), and the compiled expression.
struct ProtectedPatterns::Pattern {
  std::string source;
  std::string required;
  std::unique_ptr<icu::RegexPattern> compiled;
};

ProtectedPatterns::ProtectedPatterns(const std::vector<std::string>& patterns) {
  for (const auto& source : patterns) {
    UErrorCode status = U_ZERO_ERROR;
    UParseError where{};
    auto pattern = std::make_unique<Pattern>();
    pattern->source = source;
    pattern->required = required_literal(source);
    pattern->compiled.reset(icu::RegexPattern::compile(icu::UnicodeString::fromUTF8(source), where, status));
    if (U_FAILURE(status))
      throw UsageError("the protected pattern '" + source + "' is no regular expression: " + u_errorName(status) +
                       " near character " + std::to_string(where.offset) + " (quote special characters with \\)");
    patterns_.push_back(std::move(pattern));
  }
}

ProtectedPatterns::~ProtectedPatterns() = default;

std::vector<std::string> ProtectedPatterns::find(std::string_view text) const {
  std::vector<std::string> matches;
  icu::UnicodeString subject;
  for (const auto& pattern : patterns_) {
    if (!contains(text, pattern->required)) continue;
    if (subject.isEmpty())
      subject = icu::UnicodeString::fromUTF8({text.data(), static_cast<std::int32_t>(text.size())});
    UErrorCode status = U_ZERO_ERROR;
    const std::unique_ptr<icu::RegexMatcher> matcher(pattern->compiled->matcher(subject, status));
    if (U_SUCCESS(status)) matcher->setTimeLimit(kRegexStepLimit, status);
    for (std::int32_t from = 0; U_SUCCESS(status) && from < subject.length();) {
      matcher->region(from, subject.length(), status);
      if (!matcher->find(status)) break;
      const std::int32_t start = matcher->start(status), end = matcher->end(status);
      if (start < end) subject.tempSubStringBetween(start, end).toUTF8String(matches.emplace_back());
      from = start < end ? end : subject.moveIndex32(end, 1);
    }
    if (U_FAILURE(status))
      throw Error("the protected pattern '" + pattern->source + "' fails on a line of " + std::to_string(text.size()) +
                  " bytes: " + u_errorName(status) + " (make the pattern simpler or the line shorter)");
  }
  return matches;
}

namespace {

constexpr std::string_view kPlaceholder = "THISISPROTECTED";

/// Returns the placeholder for the protected text with the index `index`. The placeholders are those of tokenizer.perl:
/// THISISPROTECTED000, THISISPROTECTED001 and so on.
std::string placeholder(std::size_t index) {
  char digits[24];
  std::snprintf(digits, sizeof digits, "%.3zu", index);
  return std::string(kPlaceholder) + digits;
}

/// A text, and for each byte of the text '1' if the byte belongs to a placeholder, otherwise '0'.
struct MarkedText {
  std::string text, marks;

  void append(const MarkedText& other, std::size_t begin, std::size_t end) {
    text.append(other.text, begin, end - begin);
    marks.append(other.marks, begin, end - begin);
  }
};

/// Replaces each occurrence of `match` in `text` by the placeholder `name` between spaces, except for occurrences that
/// contain a part of an earlier placeholder: the text "0" is not in the placeholder THISISPROTECTED000.
void hide(std::string_view match, std::string_view name, MarkedText& text) {
  MarkedText out;
  std::size_t copied = 0;
  for (std::size_t at = text.text.find(match); at != std::string::npos;) {
    const std::string_view marks = std::string_view(text.marks).substr(at, match.size());
    if (const std::size_t mark = marks.rfind('1'); mark != std::string_view::npos) {
      at = text.text.find(match, at + mark + 1);
      continue;
    }
    out.append(text, copied, at);
    out.text.append(" ").append(name).append(" ");
    out.marks.append("0").append(name.size(), '1').append("0");
    copied = at + match.size();
    at = text.text.find(match, copied);
  }
  if (copied == 0) return;
  out.append(text, copied, text.text.size());
  text = std::move(out);
}

}  // namespace

void hide_protected(const std::vector<std::string>& matches, std::string& text) {
  MarkedText marked{text, std::string(text.size(), '0')};
  for (std::size_t i = 0; i < matches.size(); ++i) hide(matches[i], placeholder(i), marked);
  text = std::move(marked.text);
}

void restore_protected(const std::vector<std::string>& matches, std::string& text) {
  std::string out;
  std::size_t copied = 0;
  for (std::size_t at = text.find(kPlaceholder); at != std::string::npos; at = text.find(kPlaceholder, at)) {
    const std::size_t digits = at + kPlaceholder.size();
    const std::size_t end = std::min(text.find_first_not_of("0123456789", digits), text.size());
    std::size_t index = matches.size();
    std::from_chars(text.data() + digits, text.data() + end, index);
    if (index < matches.size()) {
      out.append(text, copied, at - copied).append(matches[index]);
      copied = end;
    }
    at = end;
  }
  text = out.append(text, copied);
}

}  // namespace heed
