#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace heed {

/// Finds the parts of a line that match one of several regular expressions (ICU's, whose syntax is close to Perl's), so
/// that the Moses tokeniser can leave these parts whole. Immutable; any number of threads may use one object.
class ProtectedPatterns {
 public:
  /// Compiles the patterns. Throws UsageError with the pattern if a pattern is not a regular expression.
  explicit ProtectedPatterns(const std::vector<std::string>& patterns);
  ~ProtectedPatterns();

  bool empty() const { return patterns_.empty(); }

  /// Returns the matches of the first pattern from left to right, then the matches of the second pattern, and so on.
  /// After a match the search continues behind the match, as if the text began there. Empty matches are left out.
  /// Throws Error if a pattern needs too much time or memory for this text.
  std::vector<std::string> find(std::string_view text) const;

 private:
  struct Pattern;
  std::vector<std::unique_ptr<const Pattern>> patterns_;
};

/// Returns a string that every match of the regular expression contains, or an empty string if none is easy to find. A
/// line without that string cannot match: most lines hold no "@" or "http", so that ProtectedPatterns need not search
/// them. Only the parts of `pattern` outside brackets are examined.
std::string required_literal(std::string_view pattern);

/// Replaces each of `matches` in `text` by a placeholder: a word that no rule of the tokeniser changes.
void hide_protected(const std::vector<std::string>& matches, std::string& text);
/// Replaces the placeholders in `text` by the matches again.
void restore_protected(const std::vector<std::string>& matches, std::string& text);

}  // namespace heed
