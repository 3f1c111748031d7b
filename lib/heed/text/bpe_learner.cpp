#include "heed/text/bpe_learner.h"

#include <algorithm>
#include <numeric>

#include "heed/base/error.h"
#include "heed/base/utf8.h"

namespace heed {

void WordCounts::add(std::string_view word, std::int64_t count) {
  total_ += count;
  const auto index = static_cast<std::size_t>(words_.add(word));
  if (index == counts_.size()) counts_.push_back(0);
  counts_[index] += count;
}

std::vector<std::size_t> WordCounts::by_count() const {
  std::vector<std::size_t> order(size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) { return counts_[a] > counts_[b]; });
  return order;
}

namespace {

using Symbol = std::int32_t;
using PairId = std::int32_t;

/// Learns with an inverted index from pairs to the words they occur in, so that a merge touches only these, and a heap
/// of pairs whose entries are brought up to date when they come to the top.
///
/// The reference keeps two tables of frequencies: `current`, without the pairs pruned below a threshold, and `full`,
/// which takes over when `current` runs low. A pair that is pruned and then grows again counts too low until then;
/// where that decides, its order is followed. Hence both tables here.
class Learner {
 public:
  Learner(const WordCounts& words, const BpeLimits& limits);
  BpeLearnt run(const std::function<void(std::int64_t)>& progress);

 private:
  struct Word {
    std::size_t start, length;
    std::int64_t count;
  };
  struct Pair {
    std::int64_t current = 0, full = 0;
    bool is_current = false, is_full = false, is_grown = false;
    /// The words it came into, and (as ~word) those it went out of.
    std::vector<std::int32_t> places;
  };
  struct Candidate {
    std::int64_t frequency;
    PairId pair;
  };

  Symbol intern(std::string_view text);
  PairId pair_of(Symbol first, Symbol second);
  Pair& pair(PairId id) { return pairs_[static_cast<std::size_t>(id)]; }
  std::int64_t& uses(Symbol symbol) { return uses_[static_cast<std::size_t>(symbol)]; }
  bool less(const Candidate& a, const Candidate& b) const;
  void push(PairId id);
  void fill_heap();
  Candidate most_frequent();
  void prune(double threshold);
  void refill();
  Pair& change(Symbol first, Symbol second, std::int64_t by, std::int32_t word);
  void grow(Symbol first, Symbol second, std::int64_t by, std::int32_t word);
  void merge(PairId id);
  void merge_in_word(std::int32_t index, Symbol first, Symbol second, Symbol merged);
  void use(Symbol symbol, std::int64_t by);

  BpeLimits limits_;
  std::vector<Word> words_;
  std::vector<Symbol> symbols_;  // of all words, end to end
  StringNumbering texts_;
  std::vector<std::int64_t> uses_;  // per symbol: occurrences in words_
  std::size_t characters_ = 0;      // symbols there from the start
  std::int64_t alive_ = 0;          // those, and the merged ones in use
  PairNumbering index_;
  std::vector<Pair> pairs_;
  std::vector<PairId> current_;  // the pairs with is_current
  std::vector<Candidate> heap_;
  std::vector<std::int32_t> place_counts_;  // per word, zero between merges
  std::vector<Symbol> old_word_;
  std::vector<PairId> grown_;
};

Learner::Learner(const WordCounts& words, const BpeLimits& limits) : limits_(limits) {
  for (std::size_t i = 0; i < words.size(); ++i) {
    const std::string_view word = words.word(i);
    const std::size_t start = symbols_.size();
    for (std::size_t at = 0; at < word.size();) {
      const std::size_t begin = at;
      decode_utf8(word, at);
      std::string symbol(word.substr(begin, at - begin));
      if (at == word.size()) symbol += "</w>";
      symbols_.push_back(intern(symbol));
      ++uses(symbols_.back());
    }
    words_.push_back({start, symbols_.size() - start, words.count(i)});
  }
  characters_ = static_cast<std::size_t>(texts_.size());
  alive_ = static_cast<std::int64_t>(characters_);
  place_counts_.assign(words_.size(), 0);
  for (std::size_t i = 0; i < words_.size(); ++i)
    for (std::size_t at = words_[i].start; at + 1 < words_[i].start + words_[i].length; ++at)
      change(symbols_[at], symbols_[at + 1], words_[i].count, static_cast<std::int32_t>(i));
  for (Pair& each : pairs_) each.full = each.current, each.is_full = true;
}

Symbol Learner::intern(std::string_view text) {
  const Symbol symbol = texts_.add(text);
  if (static_cast<std::size_t>(symbol) == uses_.size()) uses_.push_back(0);
  return symbol;
}

PairId Learner::pair_of(Symbol first, Symbol second) {
  const PairId id = index_.add(first, second);
  if (static_cast<std::size_t>(id) == pairs_.size()) pairs_.emplace_back();
  return id;
}

/// UTF-8 sorts as code points do, so strings compare as the reference's.
bool Learner::less(const Candidate& a, const Candidate& b) const {
  if (a.frequency != b.frequency) return a.frequency < b.frequency;
  if (a.pair == b.pair) return false;
  const int order = texts_[index_.first(a.pair)].compare(texts_[index_.first(b.pair)]);
  return order != 0 ? order < 0 : texts_[index_.second(a.pair)] < texts_[index_.second(b.pair)];
}

void Learner::push(PairId id) {
  heap_.push_back({pair(id).current, id});
  std::push_heap(heap_.begin(), heap_.end(), [this](const auto& a, const auto& b) { return less(a, b); });
}

void Learner::fill_heap() {
  heap_.clear();
  for (const PairId id : current_)
    if (pair(id).current > 0) heap_.push_back({pair(id).current, id});
  std::make_heap(heap_.begin(), heap_.end(), [this](const auto& a, const auto& b) { return less(a, b); });
}

/// The most frequent current pair; frequency 0 when there is none.
Learner::Candidate Learner::most_frequent() {
  while (!heap_.empty()) {
    const Candidate top = heap_.front();
    const Pair& state = pair(top.pair);
    if (state.is_current && state.current == top.frequency) return top;
    std::pop_heap(heap_.begin(), heap_.end(), [this](const auto& a, const auto& b) { return less(a, b); });
    heap_.pop_back();
    // An entry below the pair's frequency has a fresher one beside it.
    if (state.is_current && state.current > 0 && state.current < top.frequency) push(top.pair);
  }
  return {0, -1};
}

void Learner::prune(double threshold) {
  std::size_t kept = 0;
  for (const PairId id : current_) {
    Pair& state = pair(id);
    if (static_cast<double>(state.current) >= threshold) {
      current_[kept++] = id;
      continue;
    }
    state.full = state.current < 0 ? state.full + state.current : state.current;
    state.is_full = true;
    state.current = 0;
    state.is_current = false;
  }
  current_.resize(kept);
}

/// Makes every pair current again.
void Learner::refill() {
  current_.clear();
  for (std::size_t i = 0; i < pairs_.size(); ++i) {
    Pair& state = pairs_[i];
    state.is_current = state.is_full;
    state.current = state.full;
    if (state.is_current) current_.push_back(static_cast<PairId>(i));
  }
  fill_heap();
}

Learner::Pair& Learner::change(Symbol first, Symbol second, std::int64_t by, std::int32_t word) {
  const PairId id = pair_of(first, second);
  Pair& state = pair(id);
  if (!state.is_current) {
    state.is_current = true;
    current_.push_back(id);
  }
  state.current += by;
  state.places.push_back(by > 0 ? word : ~word);
  return state;
}

/// A change for the better: the pair goes onto the heap again, once for all words of a merge.
void Learner::grow(Symbol first, Symbol second, std::int64_t by, std::int32_t word) {
  Pair& state = change(first, second, by, word);
  if (state.is_grown) return;
  state.is_grown = true;
  grown_.push_back(static_cast<PairId>(&state - pairs_.data()));
}

void Learner::use(Symbol symbol, std::int64_t by) {
  const std::int64_t before = uses(symbol);
  uses(symbol) += by;
  if (static_cast<std::size_t>(symbol) >= characters_) alive_ += (uses(symbol) > 0) - (before > 0);
}

/// Merges within one word and brings the frequencies of the pairs around up to date, as the reference does: what is
/// around every merged symbol gains, even around one that stood there before.
void Learner::merge_in_word(std::int32_t index, Symbol first, Symbol second, Symbol merged) {
  Word& word = words_[static_cast<std::size_t>(index)];
  Symbol* now = symbols_.data() + word.start;
  old_word_.assign(now, now + word.length);
  const auto& old = old_word_;
  const std::size_t length = old.size();
  std::size_t put = 0;
  for (std::size_t i = 0; i < length; ++put) {
    if (old[i] != first || i + 1 >= length || old[i + 1] != second) {
      now[put] = old[i++];
      continue;
    }
    now[put] = merged;
    if (i > 0) change(old[i - 1], first, -word.count, index);
    const bool again = i + 3 < length && old[i + 2] == first && old[i + 3] == second;
    if (i + 2 < length && !again) change(second, old[i + 2], -word.count, index);
    i += 2;
  }
  const auto merges = static_cast<std::int64_t>(length - put);
  use(first, -merges);
  use(second, -merges);
  use(merged, merges);
  word.length = put;
  for (std::size_t i = 0; i < put; ++i) {
    if (now[i] != merged) continue;
    if (i > 0) grow(now[i - 1], merged, word.count, index);
    if (i + 1 < put && now[i + 1] != merged) grow(merged, now[i + 1], word.count, index);
  }
}

void Learner::merge(PairId id) {
  const Symbol first = index_.first(id), second = index_.second(id);
  const Symbol merged = intern(std::string(texts_[first]).append(texts_[second]));
  const std::vector<std::int32_t> places = std::move(pair(id).places);
  pair(id).places.clear();
  pair(id).current = 0;
  std::vector<std::int32_t> inside;
  for (const std::int32_t place : places) {
    const std::int32_t word = place < 0 ? ~place : place;
    std::int32_t& count = place_counts_[static_cast<std::size_t>(word)];
    count += place < 0 ? -1 : 1;
    inside.push_back(word);
  }
  for (const std::int32_t word : inside) {
    std::int32_t& count = place_counts_[static_cast<std::size_t>(word)];
    if (count > 0) merge_in_word(word, first, second, merged);
    count = 0;
  }
  pair(id).current = 0;
  for (const PairId each : grown_) {
    pair(each).is_grown = false;
    push(each);
  }
  grown_.clear();
}

BpeLearnt Learner::run(const std::function<void(std::int64_t)>& progress) {
  BpeLearnt learnt;
  auto& merges = learnt.merges.pairs;
  fill_heap();
  double threshold = static_cast<double>(most_frequent().frequency) / 10;
  for (std::int64_t i = 0; i < limits_.merges && alive_ < limits_.symbols; ++i) {
    Candidate best = most_frequent();
    if (best.pair < 0 || (i > 0 && static_cast<double>(best.frequency) < threshold)) {
      prune(threshold);
      refill();
      best = most_frequent();
      threshold = static_cast<double>(best.frequency * i) / (static_cast<double>(i) + 10000.0);
      prune(threshold);
      fill_heap();
    }
    if (best.pair < 0 || best.frequency < limits_.min_frequency) {
      learnt.exhausted = true;
      break;
    }
    merges.emplace_back(texts_[index_.first(best.pair)], texts_[index_.second(best.pair)]);
    merge(best.pair);
    if (i % 100 == 0) {
      prune(threshold);
      if (progress) progress(i + 1);
    }
  }
  return learnt;
}

}  // namespace

BpeLearnt learn_bpe(const WordCounts& words, const BpeLimits& limits,
                    const std::function<void(std::int64_t)>& progress) {
  if (limits.min_frequency < 1) throw UsageError("--min-frequency: must be at least 1");
  return Learner(words, limits).run(progress);
}

}  // namespace heed
