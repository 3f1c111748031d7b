#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace heed {

/// Regular expressions for parts of words that must not be split into pieces, such as `[0-9]+` or `<url>`. The
/// expressions are ICU's, which are close to Python's, and have the same effect as in subword-nmt's apply-bpe
/// --glossaries. A Glossaries object does not change, so that any number of threads may use one object.
class Glossaries {
 public:
  /// Makes an object without expressions.
  Glossaries();
  /// Compiles the expressions. Throws UsageError with the text of an expression that is wrong.
  explicit Glossaries(const std::vector<std::string>& patterns);
  Glossaries(Glossaries&&) noexcept;
  Glossaries& operator=(Glossaries&&) noexcept;
  ~Glossaries();

  bool empty() const { return entries_.empty(); }

  /// Cuts a word into parts so that each match of an expression is a separate part, and replaces `ends` by the byte
  /// offsets at which the parts end. With `[0-9]+` the word `mp3file` has the parts `mp`, `3` and `file`. A word
  /// without a match is one part. The expressions are applied one after another, each to the parts that the earlier
  /// ones gave.
  void isolate(std::string_view word, std::vector<std::size_t>& ends) const;

  /// Returns whether an expression matches a part from end to end, so that the part must not be split.
  bool matches(std::string_view part) const;

 private:
  struct Expression;  // a compiled regular expression
  struct Entry;       // what isolate() needs for one of the user's expressions
  std::vector<std::unique_ptr<const Entry>> entries_;
  std::unique_ptr<const Expression> any_;  // matches a text that one of the expressions matches from end to end
};

}  // namespace heed
