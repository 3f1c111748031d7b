#include "heed/text/bpe/glossaries.h"

#include <unicode/regex.h>

#include <algorithm>

#include "heed/base/error.h"
#include "heed/text/moses/protected_patterns.h"
#include "heed/text/strings/scan.h"

namespace heed {
namespace {

icu::UnicodeString to_utf16(std::string_view text) {
  return icu::UnicodeString::fromUTF8({text.data(), static_cast<std::int32_t>(text.size())});
}

}  // namespace

/// A compiled regular expression.
struct Glossaries::Expression {
  std::string source;  // the text of the expression, which error messages show
  std::unique_ptr<icu::RegexPattern> compiled;

  /// Compiles the regular expression `pattern`. Throws UsageError if the expression is wrong; the message shows
  /// `shown`, the expression as the user wrote it.
  Expression(std::string pattern, const std::string& shown) : source(std::move(pattern)) {
    UErrorCode status = U_ZERO_ERROR;
    UParseError where{};
    compiled.reset(icu::RegexPattern::compile(icu::UnicodeString::fromUTF8(source), UREGEX_UNIX_LINES, where, status));
    if (U_FAILURE(status))
      throw UsageError("the glossary '" + shown + "' is no regular expression: " + u_errorName(status) +
                       " near character " + std::to_string(where.offset) + " (quote special characters with \\)");
  }

  /// Returns an ICU matcher, which searches `text` for the expression, and gives up after kRegexStepLimit steps.
  std::unique_ptr<icu::RegexMatcher> matcher(const icu::UnicodeString& text, UErrorCode& status) const {
    std::unique_ptr<icu::RegexMatcher> made(compiled->matcher(text, status));
    if (U_SUCCESS(status)) made->setTimeLimit(kRegexStepLimit, status);
    return made;
  }

  /// Returns whether a match of the expression starts at the beginning of `text`. Throws Error if ICU needs too many
  /// steps.
  bool begins(const icu::UnicodeString& text) const {
    UErrorCode status = U_ZERO_ERROR;
    const auto search = matcher(text, status);
    const bool found = U_SUCCESS(status) && search->lookingAt(status);
    check(status);
    return found;
  }

  /// Throws Error if `status`, the result of a search for the expression, is a failure.
  void check(UErrorCode status) const {
    if (U_FAILURE(status))
      throw Error("the glossary '" + source + "' fails on a word: " + u_errorName(status) +
                  " (make the expression simpler)");
  }
};

/// One regular expression of the user, in the forms that isolate() and matches() need. `inside` finds matches anywhere
/// in a text, and `entire` matches only a text from end to end. `bounded` does so, too, unless the expression has
/// alternatives: ^a|b$ matches also a text that begins with a, which isolate() leaves uncut, as apply-bpe does.
/// `required` is a text that every match contains; a text that does not contain `required` need not be searched.
struct Glossaries::Entry {
  Expression inside, bounded, entire;
  std::string required;

  // The group of `entire` has no number, so that \1 is the first group of the user's expression.
  explicit Entry(const std::string& pattern)
      : inside(pattern, pattern),
        bounded("^" + pattern + "$", pattern),
        entire("^(?:" + pattern + ")$", pattern),
        required(required_literal(pattern)) {}

  /// Cuts `part`, a part of a word, before and after each match of the expression. Appends the byte offsets in the word
  /// at which the new parts end. `start` is the byte offset in the word at which `part` starts.
  void isolate(std::string_view part, std::size_t start, std::vector<std::size_t>& ends) const {
    if (contains(part, required)) {
      const icu::UnicodeString text = to_utf16(part);
      if (!bounded.begins(text)) cut(text, start, ends);
    }
    if (const std::size_t end = start + part.size(); ends.empty() || ends.back() < end) ends.push_back(end);
  }

  /// Finds the matches of this expression in `text`, a part of a word that starts at byte `start` of the word. Appends
  /// the byte offsets in the word at which the matches start and end to `ends`.
  void cut(const icu::UnicodeString& text, std::size_t start, std::vector<std::size_t>& ends) const {
    UErrorCode status = U_ZERO_ERROR;
    const auto search = inside.matcher(text, status);
    std::int32_t at = 0;
    std::string bytes;
    // Sets `at` to `place` (both are offsets in UTF-16 units), and adds the UTF-8 length of the text between them to
    // the byte offset `start`. Appends the new `start` to `ends` if the text is not empty.
    const auto move_to = [&](std::int32_t place) {
      bytes.clear();
      text.tempSubStringBetween(at, place).toUTF8String(bytes);
      at = place;
      start += bytes.size();
      if (!bytes.empty()) ends.push_back(start);
    };
    while (U_SUCCESS(status) && search->find(status)) {
      move_to(search->start(status));
      move_to(search->end(status));
    }
    inside.check(status);
  }
};

Glossaries::Glossaries() = default;
Glossaries::Glossaries(Glossaries&&) noexcept = default;
Glossaries& Glossaries::operator=(Glossaries&&) noexcept = default;
Glossaries::~Glossaries() = default;

Glossaries::Glossaries(const std::vector<std::string>& patterns) {
  for (const std::string& pattern : patterns) entries_.push_back(std::make_unique<const Entry>(pattern));
}

void Glossaries::isolate(std::string_view word, std::vector<std::size_t>& ends) const {
  ends.assign(1, word.size());
  std::vector<std::size_t> before;
  for (const auto& entry : entries_) {
    before.swap(ends);
    ends.clear();
    std::size_t start = 0;
    for (const std::size_t end : before) {
      entry->isolate(word.substr(start, end - start), start, ends);
      start = end;
    }
  }
}

bool Glossaries::matches(std::string_view part) const {
  return std::ranges::any_of(entries_, [&](const auto& entry) {
    return contains(part, entry->required) && entry->entire.begins(to_utf16(part));
  });
}

}  // namespace heed
