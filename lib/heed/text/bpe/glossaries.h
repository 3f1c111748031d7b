#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace heed {

/// Regular expressions for parts of words that must not be split into pieces, such as `[0-9]+` or `<url>`. The
/// expressions have the syntax of ICU's regular expressions, which are close to Python's, and have the same effect as
/// with the option `--glossaries` of subword-nmt's apply-bpe. Groups are the exception: the text of a group is a part
/// of its match and nothing else, while apply-bpe writes it a second time behind the match. A Glossaries object does
/// not change, so that any number of threads may use one object.
class Glossaries {
 public:
  /// Makes an object without regular expressions, so that every part of a word may be split.
  Glossaries();
  /// Compiles the regular expressions `patterns`. Throws UsageError with the text of an expression that is wrong.
  explicit Glossaries(const std::vector<std::string>& patterns);
  Glossaries(Glossaries&&) noexcept;
  Glossaries& operator=(Glossaries&&) noexcept;
  ~Glossaries();

  bool empty() const { return entries_.empty(); }

  /// Cuts a word into parts so that each match of an expression is a separate part, and replaces `ends` by the byte
  /// offsets at which the parts end. With `[0-9]+` the word `mp3file` has the parts `mp`, `3` and `file`. A word
  /// without a match is one part. The expressions are applied one after another, each expression to the parts that the
  /// expressions before have made.
  void isolate(std::string_view word, std::vector<std::size_t>& ends) const;

  /// Returns whether one of the regular expressions matches a part of a word from end to end, so that the part must not
  /// be split.
  bool matches(std::string_view part) const;

 private:
  struct Expression;  // a compiled regular expression
  struct Entry;       // the compiled forms of one regular expression of the user
  std::vector<std::unique_ptr<const Entry>> entries_;
};

}  // namespace heed
