#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace heed {

/// A constituent of a tree: its label, and the words start ... end - 1, which are at least one.
struct Bracket {
  std::size_t start = 0, end = 0;
  std::string_view label;
};

/// Compares the brackets of two trees over the same words, in a time that grows with the number n of brackets and words
/// as n log n.
class BracketMatcher {
 public:
  /// Without `labelled`, all labels are equal. `equal_labels` has the pairs of different labels that are equal, and
  /// must outlive this object.
  BracketMatcher(bool labelled, const std::vector<std::pair<std::string, std::string>>& equal_labels)
      : labelled_(labelled), equal_labels_(equal_labels) {}

  /// Returns how many brackets of the gold tree find a bracket of the test tree over the same words and with an equal
  /// label. Each bracket takes the first that no earlier bracket has taken.
  std::size_t matched(std::span<const Bracket> gold, std::span<const Bracket> test);
  /// Returns how many brackets of the test tree cross a bracket of the gold tree: they have words in common, and each
  /// of both has a word that the other lacks. The trees have `words` words.
  std::size_t crossing(std::span<const Bracket> gold, std::span<const Bracket> test, std::size_t words);

 private:
  /// The brackets of the test tree over the same words with the same label, which are the elements from `next` on of
  /// order_ that are not taken, up to `end`.
  struct Group {
    std::size_t next, end;
  };

  bool is_before(const Bracket& a, const Bracket& b) const;
  Group* group_of(const Bracket& bracket, std::span<const Bracket> test);

  bool labelled_;
  const std::vector<std::pair<std::string, std::string>>& equal_labels_;
  std::vector<std::size_t> order_;
  std::vector<Group> groups_;
};

}  // namespace heed
