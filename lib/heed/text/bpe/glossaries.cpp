#include "heed/text/bpe/glossaries.h"

#include <unicode/regex.h>

#include "heed/base/error.h"
#include "heed/text/moses/protected_patterns.h"
#include "heed/text/strings/scan.h"

namespace heed {
namespace {

// ICU gives up one search after this number of steps, which is about a second (see ProtectedPatterns).
constexpr std::int32_t kStepLimit = 5000;

icu::UnicodeString to_utf16(std::string_view text) {
  return icu::UnicodeString::fromUTF8({text.data(), static_cast<std::int32_t>(text.size())});
}

}  // namespace

/// A compiled regular expression.
struct Glossaries::Expression {
  std::string source;  // the expression as text, for messages
  std::unique_ptr<icu::RegexPattern> compiled;

  /// Compiles `pattern`. Messages show `shown`, which is the expression as the user wrote it. Throws UsageError.
  Expression(std::string pattern, const std::string& shown) : source(std::move(pattern)) {
    UErrorCode status = U_ZERO_ERROR;
    UParseError where{};
    compiled.reset(icu::RegexPattern::compile(icu::UnicodeString::fromUTF8(source), UREGEX_UNIX_LINES, where, status));
    if (U_FAILURE(status))
      throw UsageError("the glossary '" + shown + "' is no regular expression: " + u_errorName(status) +
                       " near character " + std::to_string(where.offset) + " (quote special characters with \\)");
  }

  /// Returns a search of `text` that stops after kStepLimit.
  std::unique_ptr<icu::RegexMatcher> matcher(const icu::UnicodeString& text, UErrorCode& status) const {
    std::unique_ptr<icu::RegexMatcher> made(compiled->matcher(text, status));
    if (U_SUCCESS(status)) made->setTimeLimit(kStepLimit, status);
    return made;
  }

  /// Returns whether a match starts at the beginning of `text`. Throws Error if the search takes too many steps.
  bool begins(const icu::UnicodeString& text) const {
    UErrorCode status = U_ZERO_ERROR;
    const auto search = matcher(text, status);
    const bool found = U_SUCCESS(status) && search->lookingAt(status);
    check(status);
    return found;
  }

  /// Throws Error if a search has failed.
  void check(UErrorCode status) const {
    if (U_FAILURE(status))
      throw Error("the glossary '" + source + "' fails on a word: " + u_errorName(status) +
                  " (make the expression simpler)");
  }
};

/// What isolate() needs for one of the user's expressions: the expression `inside` a text, the expression for the
/// `whole` text from end to end, and a `required` text that every match contains. Texts without `required` need no
/// search.
struct Glossaries::Entry {
  Expression inside, whole;
  std::string required;

  explicit Entry(const std::string& pattern)
      : inside(pattern, pattern), whole("^" + pattern + "$", pattern), required(required_literal(pattern)) {}

  /// Cuts a part of a word at the matches of the expression, and appends the byte offsets in the word at which the new
  /// parts end. `start` is the offset of the part in the word.
  void isolate(std::string_view part, std::size_t start, std::vector<std::size_t>& ends) const {
    if (contains(part, required)) {
      const icu::UnicodeString text = to_utf16(part);
      if (!whole.begins(text)) cut(text, start, ends);
    }
    if (const std::size_t end = start + part.size(); ends.empty() || ends.back() < end) ends.push_back(end);
  }

  /// Appends the byte offsets at which matches in `text` start and end. `start` is the offset of `text` in the word.
  void cut(const icu::UnicodeString& text, std::size_t start, std::vector<std::size_t>& ends) const {
    UErrorCode status = U_ZERO_ERROR;
    const auto search = inside.matcher(text, status);
    std::int32_t at = 0;
    std::string bytes;
    // Moves `at` (in UTF-16 units) to `place`, and `start` by the same text in bytes of UTF-8; appends the new `start`.
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
  if (patterns.empty()) return;
  std::string all;
  for (const std::string& pattern : patterns) {
    entries_.push_back(std::make_unique<const Entry>(pattern));
    all.append(all.empty() ? "^(" : "|").append(pattern);
  }
  any_ = std::make_unique<const Expression>(all + ")$", all);
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
  return any_ && any_->begins(to_utf16(part));
}

}  // namespace heed
