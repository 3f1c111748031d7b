#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace heed {

/// The most steps that one search for a match of a regular expression may take before it fails, in ICU's units of
/// 10,000 steps: about one second. Without this limit, a pattern such as [\w.]+@ would take hours on a long line of
/// full stops.
inline constexpr std::int32_t kRegexStepLimit = 5000;

/// Finds the parts of a line that match one of several regular expressions, so that the Moses tokeniser can leave these
/// parts whole. The syntax of the expressions is that of the library ICU, which is close to Perl's. Immutable; any
/// number of threads may use one object.
class ProtectedPatterns {
 public:
  /// Compiles the regular expressions `patterns`. Throws UsageError that names the pattern if a pattern is not a
  /// regular expression.
  explicit ProtectedPatterns(const std::vector<std::string>& patterns);
  ~ProtectedPatterns();

  bool empty() const { return patterns_.empty(); }

  /// Returns the parts of `text` that match: first all matches of the first pattern from left to right, then all
  /// matches of the second pattern, and so on. The search for the next match of a pattern begins behind the last match,
  /// as if the text began there. Empty matches are left out. Throws Error if the search for a pattern takes too much
  /// time or memory.
  std::vector<std::string> find(std::string_view text) const;

 private:
  struct Pattern;
  std::vector<std::unique_ptr<const Pattern>> patterns_;
};

/// Returns a string that every match of the regular expression `pattern` contains, or an empty string if no such string
/// is easy to find. A line without this string has no match, so that ProtectedPatterns need not search the line: most
/// lines do not contain the "@" or "http" of a typical pattern. Only the parts of `pattern` outside brackets are
/// examined.
std::string required_literal(std::string_view pattern);

/// Replaces each occurrence of the protected strings `matches` in `text` by a placeholder: a word that no rule of the
/// tokeniser changes.
void hide_protected(const std::vector<std::string>& matches, std::string& text);
/// Replaces the placeholders that hide_protected() has written into `text` by the protected strings `matches` again.
void restore_protected(const std::vector<std::string>& matches, std::string& text);

}  // namespace heed
