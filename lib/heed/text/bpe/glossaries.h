#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace heed {

/// Parts of words that byte-pair merges leave whole: regular expressions (ICU's, close to Python's), taken as
/// subword-nmt's apply-bpe --glossaries takes them. Immutable; serves any number of threads.
class Glossaries {
 public:
  Glossaries();
  /// Throws UsageError that names the expression that is none.
  explicit Glossaries(const std::vector<std::string>& patterns);
  Glossaries(Glossaries&&) noexcept;
  Glossaries& operator=(Glossaries&&) noexcept;
  ~Glossaries();

  bool empty() const { return entries_.empty(); }

  /// Replaces `ends` by the byte ends of the parts of a word: every match of each expression in turn is a part of its
  /// own. A word without a match is one part.
  void isolate(std::string_view word, std::vector<std::size_t>& ends) const;

  /// Whether a part is a match from end to end, and so must stay whole.
  bool matches(std::string_view part) const;

 private:
  struct Expression;
  struct Entry;
  std::vector<std::unique_ptr<const Entry>> entries_;
  std::unique_ptr<const Expression> any_;  // all of them, from end to end
};

}  // namespace heed
