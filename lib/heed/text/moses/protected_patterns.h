#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace heed {

/// Regular expressions (ICU's, close to Perl's) whose matches the Moses tokeniser leaves whole. Immutable, so one
/// object serves any number of threads.
class ProtectedPatterns {
 public:
  /// Throws UsageError that names the pattern that is no regular expression.
  explicit ProtectedPatterns(const std::vector<std::string>& patterns);
  ~ProtectedPatterns();

  bool empty() const { return patterns_.empty(); }

  /// The matches of each pattern in turn, from left to right; each search starts behind the match before as if the text
  /// began there. Empty matches do not count. Throws Error when a pattern needs too much time or memory for the text.
  std::vector<std::string> find(std::string_view text) const;

 private:
  struct Pattern;
  std::vector<std::unique_ptr<const Pattern>> patterns_;
};

/// A text that occurs in every match of a regular expression, as far as a look at its outer parts can tell; empty when
/// it cannot. Lines without it need no search: most lines hold no "@" or "http".
std::string required_literal(std::string_view pattern);

/// Replaces each of `matches` in the text by a word of its own that the rules of the tokeniser do not touch.
void hide_protected(const std::vector<std::string>& matches, std::string& text);
void restore_protected(const std::vector<std::string>& matches, std::string& text);

}  // namespace heed
