#include "heed/text/bpe/bpe_pairs.h"

#include <algorithm>
#include <limits>

namespace heed {

/// Compares two pairs of symbols by frequency, and equally frequent pairs by the texts of their symbols. subword-nmt's
/// learn-bpe is written in Python and compares texts by code points; the bytes of UTF-8 sort in the same order.
bool BpePairs::less(const Candidate& a, const Candidate& b) const {
  if (a.frequency != b.frequency) return a.frequency < b.frequency;
  if (a.pair == b.pair) return false;
  const int order = texts_[first(a.pair)].compare(texts_[first(b.pair)]);
  return order != 0 ? order < 0 : texts_[second(a.pair)] < texts_[second(b.pair)];
}

void BpePairs::push(Id id) {
  heap_.push_back({(*this)[id].current, id});
  std::push_heap(heap_.begin(), heap_.end(), [this](const auto& a, const auto& b) { return less(a, b); });
}

void BpePairs::fill_heap() {
  heap_.clear();
  for (std::size_t i = 0; i < pairs_.size(); ++i)
    if (pairs_[i].is_current && pairs_[i].current > 0) heap_.push_back({pairs_[i].current, static_cast<Id>(i)});
  std::make_heap(heap_.begin(), heap_.end(), [this](const auto& a, const auto& b) { return less(a, b); });
}

BpePairs::Candidate BpePairs::most_frequent() {
  while (!heap_.empty()) {
    const Candidate top = heap_.front();
    const Pair& state = (*this)[top.pair];
    if (state.is_current && state.current == top.frequency) return top;
    std::pop_heap(heap_.begin(), heap_.end(), [this](const auto& a, const auto& b) { return less(a, b); });
    heap_.pop_back();
    // The removed heap entry had a frequency that was out of date. If the pair has become rarer, the pair gets a new
    // entry. If the pair has become more frequent, the heap already holds an entry with the present frequency.
    if (state.is_current && state.current > 0 && state.current < top.frequency) push(top.pair);
  }
  return {0, kNoId};
}

std::int64_t BpePairs::highest_frequency() const {
  std::int64_t highest = 0;
  for (const Pair& each : pairs_)
    if (each.is_current) highest = std::max(highest, each.current);
  return highest;
}

BpePairs::List BpePairs::use_up(Id id) {
  Pair& state = (*this)[id];
  decreases_.emplace_back(key_of(first(id), second(id)), state.current);
  state.current = 0;
  state.is_current = true;
  return std::exchange(state.blocks, {});
}

void BpePairs::note_birth(Symbol symbol, std::int64_t merge) {
  births_.resize(static_cast<std::size_t>(symbol), 0);
  births_.push_back(merge);
}

void BpePairs::create(Key key, const Occurrences& found, bool followed) {
  const Id id = add(key);
  Pair& state = (*this)[id];
  state.current = found.count;
  state.blocks = found.blocks;
  state.followed = followed;
  if (followed) followed_.push_back(id);
  push(id);
}

void BpePairs::follow(Key key, Occurrences* unstored) {
  const std::size_t before = pairs_.size();
  const Id id = add(key);
  Pair& state = (*this)[id];
  if (state.followed) return;
  if (pairs_.size() > before && unstored) {
    state.current = unstored->count;
    state.blocks = std::exchange(unstored->blocks, {});
  }
  state.followed = true;
  followed_.push_back(id);
  // When subword-nmt's learn-bpe prunes, learn-bpe removes each pair below a threshold of frequency from its table
  // `current`. This pair was removed at the last pruning if the pair existed at that time and was below the threshold.
  // The frequency at that time is the present frequency plus all decreases since. After the removal, the entry in
  // `current` holds only these decreases, as a negative number; without a decrease `current` has no entry for the pair.
  std::int64_t lost = 0;
  for (const auto& [decreased, by] : decreases_) lost += decreased == key ? by : 0;
  const std::int64_t born = std::max(birth(first_of(key)), birth(second_of(key)));
  if (born <= pruned_at_ && static_cast<double>(state.current + lost) < threshold_) {
    state.full = state.current + lost;
    state.is_full = true;
    state.current = -lost;
    state.is_current = lost > 0;
  }
}

void BpePairs::keep(std::int64_t least) {
  const PairIds old_index = std::exchange(index_, {});
  std::size_t kept = 0;
  followed_.clear();
  for (std::size_t i = 0; i < pairs_.size(); ++i) {
    if (!pairs_[i].followed && pairs_[i].current < least) {
      posting_lists_.clear(pairs_[i].blocks);
      continue;
    }
    const auto old = static_cast<Id>(i);
    const Id id = index_.add(old_index.first(old), old_index.second(old));
    if (pairs_[i].followed) followed_.push_back(id);
    pairs_[kept++] = pairs_[i];
  }
  pairs_.resize(kept);
}

void BpePairs::keep_followed() {
  keep(std::numeric_limits<std::int64_t>::max());
  posting_lists_.clear();
  for (Pair& each : pairs_) each.blocks = {};
}

double BpePairs::threshold_after(std::int64_t frequency, std::int64_t merges) const {
  if (pruned_at_ < 0) return static_cast<double>(frequency) / 10;
  // learn-bpe multiplies integers of any size. The product of two doubles is the same double, and cannot overflow.
  const auto done = static_cast<double>(merges);
  return static_cast<double>(frequency) * done / (done + 10000.0);
}

void BpePairs::start() {
  for (Pair& each : pairs_) {
    each.full = each.current;
    each.is_full = true;
  }
  threshold_ = threshold_after(highest_frequency(), 0);
  fill_heap();
}

void BpePairs::prune(std::int64_t merges) {
  for (const Id id : followed_) {
    Pair& state = (*this)[id];
    if (!state.is_current || static_cast<double>(state.current) >= threshold_) continue;
    // A negative `state.current` is the sum of the decreases of the pair's count since learn-bpe last pruned the pair.
    // The full count is then `state.full` plus this negative number.
    state.full = state.current < 0 ? state.full + state.current : state.current;
    state.is_full = true;
    state.current = 0;
    state.is_current = false;
  }
  decreases_.clear();
  pruned_at_ = merges;
}

void BpePairs::restore(std::int64_t merges) {
  prune(merges);
  for (const Id id : followed_) {
    Pair& state = (*this)[id];
    state.is_current = state.is_full;
    state.current = state.full;
  }
}

void BpePairs::start_again(std::int64_t least, std::int64_t merges) {
  keep(least);
  // At this point, subword-nmt's learn-bpe has the frequency in the text as the value of the pair in its table `full`.
  // BpePairs::follow() needs this value if the pair becomes followed later.
  for (Pair& each : pairs_)
    if (!each.followed) each.full = each.current, each.is_full = true;
  threshold_ = threshold_after(highest_frequency(), merges);
  prune(merges);
  fill_heap();
}

}  // namespace heed
