#include "heed/metrics/bracket_matcher.h"

#include <algorithm>
#include <numeric>
#include <tuple>

namespace heed {
namespace {

/// A number for each place of a row of places, at first 0, of which the greatest in a range is found in logarithmic
/// time: a segment tree.
class RangeMaximum {
 public:
  explicit RangeMaximum(std::size_t places) : places_(places), nodes_(2 * places) {}

  /// Raises the number of a place to `value`, if it is less.
  void raise(std::size_t place, std::size_t value) {
    for (std::size_t node = places_ + place; node > 0; node /= 2) nodes_[node] = std::max(nodes_[node], value);
  }
  /// Returns the greatest number of the places begin ... end - 1; 0 if there are none.
  std::size_t greatest(std::size_t begin, std::size_t end) const {
    std::size_t most = 0;
    for (begin += places_, end += places_; begin < end; begin /= 2, end /= 2) {
      if (begin % 2 == 1) most = std::max(most, nodes_[begin++]);
      if (end % 2 == 1) most = std::max(most, nodes_[--end]);
    }
    return most;
  }

 private:
  std::size_t places_;
  std::vector<std::size_t> nodes_;
};

}  // namespace

/// Returns whether a bracket is before another one in the order of the groups: by words, and then by the label.
bool BracketMatcher::is_before(const Bracket& a, const Bracket& b) const {
  return labelled_ ? std::tie(a.start, a.end, a.label) < std::tie(b.start, b.end, b.label)
                   : std::tie(a.start, a.end) < std::tie(b.start, b.end);
}

/// Returns the group over the bracket's words with its label; null without such a group.
BracketMatcher::Group* BracketMatcher::group_of(const Bracket& bracket, std::span<const Bracket> test) {
  // The last bracket of a group is never taken out of order_, so that it tells what the group has.
  const auto bracket_of = [&](const Group& group) -> const Bracket& { return test[order_[group.end - 1]]; };
  const auto found =
      std::lower_bound(groups_.begin(), groups_.end(), bracket,
                       [&](const Group& group, const Bracket& wanted) { return is_before(bracket_of(group), wanted); });
  return found == groups_.end() || is_before(bracket, bracket_of(*found)) ? nullptr : &*found;
}

std::size_t BracketMatcher::matched(std::span<const Bracket> gold, std::span<const Bracket> test) {
  order_.resize(test.size());
  std::iota(order_.begin(), order_.end(), std::size_t{0});
  std::stable_sort(order_.begin(), order_.end(),
                   [&](std::size_t a, std::size_t b) { return is_before(test[a], test[b]); });
  groups_.clear();
  for (std::size_t i = 0; i < order_.size(); ++i) {
    if (i == 0 || is_before(test[order_[i - 1]], test[order_[i]])) groups_.push_back({i, i});
    groups_.back().end = i + 1;
  }

  std::size_t count = 0;
  for (const Bracket& bracket : gold) {
    Group* first = nullptr;
    const auto consider = [&](std::string_view label) {
      Group* const group = group_of({bracket.start, bracket.end, label}, test);
      if (!group || group->next == group->end) return;
      if (!first || order_[group->next] < order_[first->next]) first = group;
    };
    consider(bracket.label);
    for (const auto& [one, other] : equal_labels_) {
      if (!labelled_) break;
      if (bracket.label == one) consider(other);
      if (bracket.label == other) consider(one);
    }
    if (!first) continue;
    ++first->next;
    ++count;
  }
  return count;
}

std::size_t BracketMatcher::crossing(std::span<const Bracket> gold, std::span<const Bracket> test, std::size_t words) {
  // Of the gold brackets: for each start, the greatest end; and for each end, the greatest distance of a start from the
  // end of the sentence.
  RangeMaximum ends(words + 1), distances(words + 1);
  for (const Bracket& bracket : gold) {
    ends.raise(bracket.start, bracket.end);
    distances.raise(bracket.end, words - bracket.start);
  }
  return static_cast<std::size_t>(std::count_if(test.begin(), test.end(), [&](const Bracket& bracket) {
    return ends.greatest(bracket.start + 1, bracket.end) > bracket.end ||
           distances.greatest(bracket.start + 1, bracket.end) > words - bracket.start;
  }));
}

}  // namespace heed
