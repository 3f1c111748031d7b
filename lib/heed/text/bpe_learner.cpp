#include "heed/text/bpe_learner.h"

#include <algorithm>
#include <array>
#include <numeric>
#include <utility>

#include "heed/base/error.h"
#include "heed/text/scan.h"

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
constexpr std::int32_t kEnd = -1;
constexpr std::string_view kWordEnd = "</w>";

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
  /// The words a pair came into, and (as ~word) those it went out of: from the start in first_places_, later in lists.
  struct Places {
    std::size_t start = 0;
    std::int32_t count = 0, later = kEnd;
  };
  struct Pair {
    std::int64_t current = 0, full = 0;
    Places places = {};
    bool is_current = false, is_full = false, is_grown = false;
  };
  struct LaterPlace {
    std::int32_t word, next;
  };
  struct Candidate {
    std::int64_t frequency;
    PairId pair;
  };

  void read_words(const WordCounts& words);
  void index_pairs();
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
  template <class Take>
  void take_places(PairId id, Take&& take);
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
  std::vector<std::int32_t> first_places_;
  std::vector<LaterPlace> later_places_;
  std::int32_t free_place_ = kEnd;  // a list of the places that may be used again
  std::vector<PairId> current_;     // the pairs with is_current
  std::vector<Candidate> heap_;
  std::vector<std::int32_t> place_counts_;  // per word, zero between merges
  std::vector<std::int32_t> inside_;
  std::vector<PairId> grown_;
};

Learner::Learner(const WordCounts& words, const BpeLimits& limits) : limits_(limits) {
  read_words(words);
  characters_ = static_cast<std::size_t>(texts_.size());
  alive_ = static_cast<std::int64_t>(characters_);
  place_counts_.assign(words_.size(), 0);
  index_pairs();
}

void Learner::read_words(const WordCounts& words) {
  std::array<std::array<Symbol, 128>, 2> ascii;  // symbols of ASCII characters within and at the end of words
  for (auto& table : ascii) table.fill(kNoNumber);
  std::string text;
  words_.reserve(words.size());
  for (std::size_t i = 0; i < words.size(); ++i) {
    const std::string_view word = words.word(i);
    const std::size_t start = symbols_.size();
    for (std::size_t at = 0; at < word.size();) {
      const std::size_t begin = at;
      const char32_t c = next_code_point(word, at);
      const bool final = at == word.size();
      Symbol symbol = c < 128 ? ascii[final][c] : kNoNumber;
      if (symbol == kNoNumber) {
        text.assign(word, begin, at - begin);
        if (final) text += kWordEnd;
        symbol = intern(text);
        if (c < 128) ascii[final][c] = symbol;
      }
      symbols_.push_back(symbol);
      ++uses(symbol);
    }
    words_.push_back({start, symbols_.size() - start, words.count(i)});
  }
}

/// Counts the pairs there are, and lists the places of each one after the other.
void Learner::index_pairs() {
  std::vector<PairId> ids;
  ids.reserve(symbols_.size());
  for (const Word& word : words_) {
    for (std::size_t at = word.start; at + 1 < word.start + word.length; ++at) {
      ids.push_back(pair_of(symbols_[at], symbols_[at + 1]));
      Pair& state = pair(ids.back());
      state.current += word.count;
      ++state.places.count;
    }
  }
  std::size_t end = 0;
  for (std::size_t i = 0; i < pairs_.size(); ++i) {
    Pair& state = pairs_[i];
    state.full = state.current;
    state.is_current = state.is_full = true;
    end += static_cast<std::size_t>(state.places.count);
    state.places.start = end;
    current_.push_back(static_cast<PairId>(i));
  }
  first_places_.resize(ids.size());
  for (std::size_t i = words_.size(); i-- > 0;) {
    for (std::size_t at = 1; at < words_[i].length; ++at) {
      first_places_[--pair(ids.back()).places.start] = static_cast<std::int32_t>(i);
      ids.pop_back();
    }
  }
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
  const LaterPlace place{by > 0 ? word : ~word, state.places.later};
  if (free_place_ == kEnd) {
    state.places.later = static_cast<std::int32_t>(later_places_.size());
    later_places_.push_back(place);
  } else {
    state.places.later = free_place_;
    LaterPlace& slot = later_places_[static_cast<std::size_t>(free_place_)];
    free_place_ = slot.next;
    slot = place;
  }
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
  Symbol* const now = symbols_.data() + word.start;
  const std::size_t length = word.length;
  std::size_t put = 0;
  bool after_merge = false;
  for (std::size_t i = 0; i < length; ++put) {
    if (now[i] != first || i + 1 >= length || now[i + 1] != second) {
      now[put] = now[i++];
      after_merge = false;
      continue;
    }
    if (i > 0) change(after_merge ? second : now[put - 1], first, -word.count, index);
    const bool again = i + 3 < length && now[i + 2] == first && now[i + 3] == second;
    if (i + 2 < length && !again) change(second, now[i + 2], -word.count, index);
    now[put] = merged;
    after_merge = true;
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

/// Calls take(word) for the places of a pair and forgets them.
template <class Take>
void Learner::take_places(PairId id, Take&& take) {
  const Places places = std::exchange(pair(id).places, {});
  for (std::int32_t i = 0; i < places.count; ++i) take(first_places_[places.start + static_cast<std::size_t>(i)]);
  for (std::int32_t at = places.later; at != kEnd;) {
    LaterPlace& place = later_places_[static_cast<std::size_t>(at)];
    take(place.word);
    const std::int32_t next = std::exchange(place.next, free_place_);
    free_place_ = std::exchange(at, next);
  }
}

void Learner::merge(PairId id) {
  const Symbol first = index_.first(id), second = index_.second(id);
  const Symbol merged = intern(std::string(texts_[first]).append(texts_[second]));
  inside_.clear();
  take_places(id, [this](std::int32_t place) {
    const std::int32_t word = place < 0 ? ~place : place;
    place_counts_[static_cast<std::size_t>(word)] += place < 0 ? -1 : 1;
    inside_.push_back(word);
  });
  pair(id).current = 0;
  for (const std::int32_t word : inside_) {
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
