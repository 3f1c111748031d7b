#include "heed/text/bpe_learner.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>
#include <memory>
#include <numeric>
#include <utility>

#include "heed/base/error.h"
#include "heed/text/scan.h"

namespace heed {

bool WordCounts::add(std::string_view word, std::int64_t count, std::uint64_t hash) {
  total_ += count;
  const auto index = static_cast<std::size_t>(words_.add(word, hash));
  const bool is_new = index == counts_.size();
  if (is_new) counts_.push_back(0);
  counts_[index] += count;
  return is_new;
}

std::vector<std::size_t> WordCounts::by_count() const {
  std::vector<std::size_t> order(size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) { return counts_[a] > counts_[b]; });
  return order;
}

void WordCounter::add(std::string_view text, int thread) {
  Share& share = shares_[static_cast<std::size_t>(thread)];
  bool empty = true;
  for (std::size_t at = 0; at < text.size();) {
    if (text[at] == '\n') share.sentences += !empty, empty = true;
    if (text[at] == '\n' || text[at] == ' ') {
      ++at;
      continue;
    }
    std::size_t end = at + 1;
    while (end < text.size() && text[end] != ' ' && text[end] != '\n') ++end;
    const std::string_view word = text.substr(at, end - at);
    const std::uint64_t hash = hash_of(word);
    // The table takes the lower half of a hash.
    if ((hash >> 32) % shares_.size() == static_cast<std::size_t>(thread) && share.words.add(word, 1, hash) &&
        shares_.size() > 1)
      share.first.push_back(share.position);
    ++share.position;
    empty = false;
    at = end;
  }
}

WordCounts WordCounter::take() {
  if (shares_.size() == 1) return std::move(shares_.front().words);
  WordCounts all;
  std::vector<std::size_t> next(shares_.size(), 0);
  for (;;) {
    std::size_t earliest = shares_.size();
    for (std::size_t i = 0; i < shares_.size(); ++i)
      if (next[i] < shares_[i].first.size() &&
          (earliest == shares_.size() || shares_[i].first[next[i]] < shares_[earliest].first[next[earliest]]))
        earliest = i;
    if (earliest == shares_.size()) break;
    const WordCounts& words = shares_[earliest].words;
    all.add(words.word(next[earliest]), words.count(next[earliest]));
    ++next[earliest];
  }
  shares_.clear();
  return all;
}

namespace {

using Symbol = std::int32_t;
using PairId = std::int32_t;
constexpr std::string_view kWordEnd = "</w>";

/// Arrays that grow by doubling, cut from large blocks; what is given back is used again.
class ArrayPool {
 public:
  /// Appends to an array of `size` numbers; null and 0 to begin with.
  void push(std::int32_t*& array, std::int32_t& size, std::int32_t value) {
    if (std::has_single_bit(static_cast<std::uint32_t>(size)) || size == 0) {
      std::int32_t* larger = take(size_class(size));
      if (size > 0) {
        std::copy(array, array + size, larger);
        give_back(array, size);
      }
      array = larger;
    }
    array[size++] = value;
  }

  void give_back(std::int32_t* array, std::int32_t size) {
    if (size > 0) free_[size_class(size - 1)].push_back(array);
  }

 private:
  static constexpr std::size_t kBlock = 1 << 16;

  /// Of the array that holds size + 1 numbers: 2 to the power of the class.
  static std::size_t size_class(std::int32_t size) {
    return static_cast<std::size_t>(std::bit_width(static_cast<std::uint32_t>(size)));
  }

  std::int32_t* take(std::size_t size_class) {
    auto& free = free_[size_class];
    if (!free.empty()) {
      std::int32_t* array = free.back();
      free.pop_back();
      return array;
    }
    const std::size_t size = std::size_t{1} << size_class;
    if (size > left_) {
      left_ = std::max(size, kBlock);
      blocks_.push_back(std::make_unique_for_overwrite<std::int32_t[]>(left_));
      next_ = blocks_.back().get();
    }
    left_ -= size;
    return std::exchange(next_, next_ + size);
  }

  std::array<std::vector<std::int32_t*>, 32> free_;
  std::vector<std::unique_ptr<std::int32_t[]>> blocks_;
  std::int32_t* next_ = nullptr;
  std::size_t left_ = 0;
};

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
  /// What stands before the symbols of each word in words_, so that all of a word is in one place of the memory.
  struct Header {
    std::int64_t count;
    std::int32_t length;
    std::int32_t places;  // how often the pair being merged is in it; zero between merges
  };
  static constexpr std::size_t kHeader = sizeof(Header) / sizeof(Symbol);
  using WordId = std::int32_t;  // where its header begins in words_

  /// The words a pair came into, and (as ~word) those it went out of: from the start in first_places_, later in a
  /// block of their own.
  struct Places {
    std::size_t start = 0;
    std::int32_t count = 0;
    std::int32_t later_count = 0;
    WordId* later = nullptr;
  };
  struct Pair {
    std::int64_t current = 0, full = 0;
    Places places = {};
    bool is_current = false, is_full = false, is_grown = false;
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
  /// Of a word; the symbols follow. Symbols are numbers of no other type, so the bytes are moved by memcpy.
  Header header(WordId word) const {
    Header out{};
    std::memcpy(&out, words_.data() + word, sizeof out);
    return out;
  }
  void set_header(WordId word, const Header& header) { std::memcpy(words_.data() + word, &header, sizeof header); }
  std::int64_t& uses(Symbol symbol) { return uses_[static_cast<std::size_t>(symbol)]; }
  bool less(const Candidate& a, const Candidate& b) const;
  void push(PairId id);
  void fill_heap();
  Candidate most_frequent();
  void prune(double threshold);
  void refill();
  Pair& change(Symbol first, Symbol second, std::int64_t by, WordId word);
  void grow(Symbol first, Symbol second, std::int64_t by, WordId word);
  void merge(PairId id);
  void merge_in_word(WordId word, Symbol first, Symbol second, Symbol merged);
  void use(Symbol symbol, std::int64_t by);

  BpeLimits limits_;
  std::vector<Symbol> words_;  // headers and symbols, end to end
  StringNumbering texts_;
  std::vector<std::int64_t> uses_;  // per symbol: occurrences in words_
  std::size_t characters_ = 0;      // symbols there from the start
  std::int64_t alive_ = 0;          // those, and the merged ones in use
  PairNumbering index_;
  std::vector<Pair> pairs_;
  std::vector<WordId> first_places_;
  ArrayPool later_places_;
  std::vector<PairId> current_;  // the pairs with is_current
  std::vector<Candidate> heap_;
  std::vector<WordId> inside_;
  std::vector<PairId> grown_;
};

Learner::Learner(const WordCounts& words, const BpeLimits& limits) : limits_(limits) {
  read_words(words);
  characters_ = static_cast<std::size_t>(texts_.size());
  alive_ = static_cast<std::int64_t>(characters_);
  index_pairs();
}

void Learner::read_words(const WordCounts& words) {
  std::array<std::array<Symbol, 128>, 2> ascii;  // symbols of ASCII characters within and at the end of words
  for (auto& table : ascii) table.fill(kNoNumber);
  std::string text;
  std::size_t bytes = 0;
  for (std::size_t i = 0; i < words.size(); ++i) bytes += words.word(i).size();
  words_.reserve(words.size() * kHeader + bytes);
  for (std::size_t i = 0; i < words.size(); ++i) {
    const std::string_view word = words.word(i);
    const std::size_t start = words_.size();
    words_.resize(start + kHeader);
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
      words_.push_back(symbol);
      ++uses(symbol);
    }
    if (words_.size() > std::numeric_limits<WordId>::max())
      throw Error("the text has too many different words to learn from (" + std::to_string(words.size()) +
                  "; leave out lines that are no sentences)");
    set_header(
        static_cast<WordId>(start),
        {.count = words.count(i), .length = static_cast<std::int32_t>(words_.size() - start - kHeader), .places = 0});
  }
}

/// Counts the pairs there are, and lists the places of each one after the other.
void Learner::index_pairs() {
  std::vector<PairId> ids;
  ids.reserve(words_.size());
  std::vector<WordId> starts;
  for (std::size_t at = 0; at < words_.size();) {
    const Header word = header(static_cast<WordId>(at));
    const Symbol* const symbols = words_.data() + at + kHeader;
    for (std::int32_t i = 0; i + 1 < word.length; ++i) {
      ids.push_back(pair_of(symbols[i], symbols[i + 1]));
      Pair& state = pair(ids.back());
      state.current += word.count;
      ++state.places.count;
    }
    starts.push_back(static_cast<WordId>(at));
    at += kHeader + static_cast<std::size_t>(word.length);
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
  for (; !starts.empty(); starts.pop_back()) {
    for (std::int32_t i = header(starts.back()).length; i > 1; --i) {
      first_places_[--pair(ids.back()).places.start] = starts.back();
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

Learner::Pair& Learner::change(Symbol first, Symbol second, std::int64_t by, WordId word) {
  const PairId id = pair_of(first, second);
  Pair& state = pair(id);
  if (!state.is_current) {
    state.is_current = true;
    current_.push_back(id);
  }
  state.current += by;
  later_places_.push(state.places.later, state.places.later_count, by > 0 ? word : ~word);
  return state;
}

/// A change for the better: the pair goes onto the heap again, once for all words of a merge.
void Learner::grow(Symbol first, Symbol second, std::int64_t by, WordId word) {
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
void Learner::merge_in_word(WordId index, Symbol first, Symbol second, Symbol merged) {
  Header word = header(index);
  Symbol* const now = words_.data() + index + kHeader;
  const auto length = static_cast<std::size_t>(word.length);
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
  word.length = static_cast<std::int32_t>(put);
  set_header(index, word);
  for (std::size_t i = 0; i < put; ++i) {
    if (now[i] != merged) continue;
    if (i > 0) grow(now[i - 1], merged, word.count, index);
    if (i + 1 < put && now[i + 1] != merged) grow(merged, now[i + 1], word.count, index);
  }
}

void Learner::merge(PairId id) {
  const Symbol first = index_.first(id), second = index_.second(id);
  const Symbol merged = intern(std::string(texts_[first]).append(texts_[second]));
  const Places places = std::exchange(pair(id).places, {});
  const auto begin = first_places_.begin() + static_cast<std::ptrdiff_t>(places.start);
  inside_.assign(begin, begin + places.count);
  inside_.insert(inside_.end(), places.later, places.later + places.later_count);
  later_places_.give_back(places.later, places.later_count);
  pair(id).current = 0;
  // The words lie anywhere in the memory, so the processor is told some steps before.
  constexpr std::size_t ahead = 16;
  const auto fetch = [this](std::size_t i) {
    if (i >= inside_.size()) return;
    const WordId word = inside_[i];
    __builtin_prefetch(words_.data() + (word < 0 ? ~word : word), 1);
  };
  for (std::size_t i = 0; i < inside_.size(); ++i) {
    fetch(i + ahead);
    WordId& word = inside_[i];
    const int change = word < 0 ? -1 : 1;
    if (word < 0) word = ~word;
    Header there = header(word);
    there.places += change;
    set_header(word, there);
  }
  for (std::size_t i = 0; i < inside_.size(); ++i) {
    fetch(i + ahead);
    const WordId word = inside_[i];
    Header there = header(word);
    if (there.places == 0) continue;
    const bool inside = std::exchange(there.places, 0) > 0;
    set_header(word, there);
    if (inside) merge_in_word(word, first, second, merged);
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
