#include "heed/text/protected_patterns.h"

#include <unicode/regex.h>

#include <cstdio>

#include "heed/base/error.h"
#include "heed/text/scan.h"

namespace heed {

struct ProtectedPatterns::Pattern {
  std::string source;
  std::unique_ptr<icu::RegexPattern> compiled;
};

ProtectedPatterns::ProtectedPatterns(const std::vector<std::string>& patterns) {
  for (const auto& source : patterns) {
    UErrorCode status = U_ZERO_ERROR;
    UParseError where{};
    auto pattern = std::make_unique<Pattern>();
    pattern->source = source;
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
  const auto subject = icu::UnicodeString::fromUTF8({text.data(), static_cast<std::int32_t>(text.size())});
  for (const auto& pattern : patterns_) {
    UErrorCode status = U_ZERO_ERROR;
    const std::unique_ptr<icu::RegexMatcher> matcher(pattern->compiled->matcher(subject, status));
    for (std::int32_t from = 0; U_SUCCESS(status) && from < subject.length();) {
      matcher->region(from, subject.length(), status);
      if (!matcher->find(status)) break;
      const std::int32_t start = matcher->start(status), end = matcher->end(status);
      if (start < end) subject.tempSubStringBetween(start, end).toUTF8String(matches.emplace_back());
      from = start < end ? end : subject.moveIndex32(end, 1);
    }
    if (U_FAILURE(status))
      throw Error("the protected pattern '" + pattern->source + "' fails on a line of " + std::to_string(text.size()) +
                  " bytes: " + u_errorName(status) + " (make the pattern simpler)");
  }
  return matches;
}

namespace {

std::string placeholder(std::size_t index) {
  char digits[24];
  std::snprintf(digits, sizeof digits, "%.3zu", index);
  return std::string("THISISPROTECTED") + digits;
}

}  // namespace

void hide_protected(const std::vector<std::string>& matches, std::string& text) {
  for (std::size_t i = 0; i < matches.size(); ++i) replace_all(text, matches[i], " " + placeholder(i) + " ");
}

void restore_protected(const std::vector<std::string>& matches, std::string& text) {
  for (std::size_t i = 0; i < matches.size(); ++i) replace_all(text, placeholder(i), matches[i]);
}

}  // namespace heed
