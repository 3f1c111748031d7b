#include "heed/text/bpe_learner.h"

#include <algorithm>
#include <array>
#include <bit>
#include <memory>
#include <span>
#include <unordered_map>
#include <utility>

#include "heed/base/error.h"
#include "heed/base/pages.h"
#include "heed/text/bpe_text.h"
#include "heed/text/numbering.h"
#include "heed/text/place_lists.h"
#include "heed/text/scan.h"

namespace heed {

namespace {

using Symbol = std::int32_t;
using PairId = std::int32_t;
using Key = std::uint64_t;  // of a pair: its first symbol above its second
using Place = std::uint32_t;
constexpr std::string_view kWordEnd = "</w>";

Key key_of(Symbol first, Symbol second) {
  return static_cast<Key>(static_cast<std::uint32_t>(first)) << 32 | static_cast<std::uint32_t>(second);
}
Symbol first_of(Key key) {
  return static_cast<Symbol>(key >> 32);
}
Symbol second_of(Key key) {
  return static_cast<Symbol>(key & 0xFFFFFFFFu);
}

/// Learns with lists of the blocks of words in which frequent pairs occur, so that a merge searches these only, and a
/// heap of pairs whose entries are brought up to date when they come to the top. Rare pairs are not stored: the text is
/// counted again when their time comes.
///
/// The reference keeps two tables of frequencies: `current`, without the pairs pruned below a threshold, and `full`,
/// which takes over when `current` runs low. As long as every merge makes a symbol that was not there before, a pair
/// becomes rarer only, and what was pruned cannot decide anything. A merge that makes a symbol again, of other parts,
/// lets pairs grow: one that was pruned counts too low from then on, one that stood beside the symbol counts too high,
/// and the reference's index from pairs to words errs likewise. Such pairs are `followed`: both frequencies, and how
/// far the index is from the text (corrections_), are kept as the reference has them. What they were before follows
/// from the frequency and the decreases since the last pruning (decreases_).
class Learner {
 public:
  /// `cells`: what BpeText needs for the words at most. `each_word` calls its argument with each word and its count.
  template <class EachWord>
  Learner(std::size_t cells, EachWord&& each_word, const BpeLimits& limits);
  BpeLearnt run(const std::function<void(std::int64_t)>& progress);

 private:
  static constexpr std::int64_t kUnknown = std::numeric_limits<std::int64_t>::max();
  // Pairs rarer than this share of the most frequent are not stored, nor more than some of the most frequent.
  static constexpr std::int64_t kFrequencySpan = 16;
  static constexpr std::size_t kMostPairs = 1 << 16;

  using List = PlaceLists::List;
  struct Pair {
    std::int64_t current = 0;  // the frequency, but for followed pairs
    std::int64_t full = 0;
    List blocks = {};
    bool is_current = true, is_full = false, followed = false;
  };
  struct Candidate {
    std::int64_t frequency;
    PairId pair;
  };
  /// What stands beside the places of a merge: how often, and where.
  struct Neighbour {
    std::int64_t count = 0;
    List blocks = {};
  };
  struct Neighbours {
    std::vector<Neighbour> of;  // per symbol
    std::vector<Symbol> found;
    Neighbour& operator[](Symbol symbol) { return of[static_cast<std::size_t>(symbol)]; }
    void note(Symbol symbol, std::int64_t count, Place block, PlaceLists& places) {
      Neighbour& neighbour = (*this)[symbol];
      if (neighbour.blocks.empty()) found.push_back(symbol);
      neighbour.count += count;
      places.append(neighbour.blocks, block);
    }
  };
  /// What a merge does to a pair where the reference is followed.
  struct Change {
    std::int64_t by = 0;
    List blocks = {};  // those in which it came to be; none where it becomes rarer only
  };
  using Corrections =
      std::unordered_map<std::uint32_t, std::int32_t>;  // per word: places in the index, less those in the text

  void read_word(std::string_view word, std::int64_t count, std::size_t cells);
  void widen_for(std::int64_t count, std::size_t capacity);
  Symbol intern(std::string_view text);
  Pair& pair(PairId id) { return pairs_[static_cast<std::size_t>(id)]; }
  PairId add_pair(Key key);
  bool less(const Candidate& a, const Candidate& b) const;
  void push(PairId id);
  void fill_heap();
  Candidate most_frequent();
  std::int64_t highest_frequency() const;

  void keep_pairs(std::int64_t least);
  template <class Cell>
  void count_pairs(BpeText<Cell>& text, std::int64_t most);
  double threshold_after(std::int64_t frequency, std::int64_t merges);
  void choose_pairs(std::int64_t merges);
  void prune(std::int64_t merges);
  void refill(std::int64_t merges);

  void merge(PairId id, std::int64_t merges);
  template <class Cell>
  void merge_in_blocks(BpeText<Cell>& text, const List& blocks);
  template <class Cell>
  void merge_in_block(BpeText<Cell>& text, Place number);
  void decrease(Symbol first, Symbol second, std::int64_t by);
  void create(Symbol first, Symbol second, Neighbour& found);
  void apply();
  void use(Symbol symbol, std::int64_t by);

  bool can_come_again(Symbol symbol) const;
  void correct(Key key, std::uint32_t word, std::int64_t by);
  template <class Cell>
  void merge_exactly(BpeText<Cell>& text, PairId id, const List& listed, const Corrections& corrections);
  void merge_word(std::uint32_t word, std::int64_t count, Place block);
  void change(Key key, std::int64_t by);
  template <class Cell>
  void find_unstored(const BpeText<Cell>& text);
  PairId follow(Key key);
  void apply_exactly();

  template <class Cell>
  WordCounts count_pieces(const BpeText<Cell>& text, const BpeMerges& merges) const;

  template <class Function>
  auto with_text(Function&& function) {
    return wide_ ? function(*wide_) : function(*narrow_);
  }

  BpeLimits limits_;
  std::unique_ptr<BpeText<std::uint16_t>> narrow_;  // the text, until it has too many symbols
  std::unique_ptr<BpeText<std::uint32_t>> wide_;
  // Words that occur 0 times change frequencies by 0, which lets the reference forget them: all pairs are followed.
  bool follows_all_ = false;
  StringNumbering texts_;
  std::array<std::array<Symbol, 128>, 2> ascii_;  // symbols of ASCII characters within and at the end of words
  std::vector<std::int64_t> uses_;                // per symbol: occurrences in different words
  std::vector<std::int64_t> births_;  // per symbol: number of the merge that made it first; 0 for characters
  std::size_t characters_ = 0;        // symbols there from the start
  std::int64_t alive_ = 0;            // those, and the merged ones in use

  std::int64_t least_ = kUnknown;  // the frequency of stored pairs, but for followed ones
  PairNumbering index_;
  std::vector<Pair> pairs_;
  std::vector<PairId> followed_;
  PlaceLists places_;
  std::vector<Candidate> heap_;
  double threshold_ = 0;
  std::int64_t pruned_at_ = -1;                          // merges before the last pruning
  std::vector<std::pair<Key, std::int64_t>> decreases_;  // since then

  // Of the merge at work:
  Symbol first_ = 0, second_ = 0, merged_ = 0;
  std::int64_t made_ = 0;
  bool made_again_ = false;     // the merged symbol was there before
  bool leaves_places_ = false;  // the reference's index has places of the pair left
  Neighbours before_, after_;
  Neighbour between_;              // merged symbols side by side
  std::vector<Symbol> old_, new_;  // a word before and after
  std::unordered_map<Key, Change> changes_;
  std::unordered_map<Key, Neighbour> unstored_;  // pairs with the merged symbol

  std::unordered_map<Key, Corrections> corrections_;
  std::vector<bool> recut_;  // words that the merges cut in another way when they are applied by rank
};

template <class EachWord>
Learner::Learner(std::size_t cells, EachWord&& each_word, const BpeLimits& limits)
    : limits_(limits), narrow_(std::make_unique<BpeText<std::uint16_t>>(cells)) {
  for (auto& table : ascii_) table.fill(kNoNumber);
  each_word([&](std::string_view word, std::int64_t count) { read_word(word, count, cells); });
  characters_ = static_cast<std::size_t>(texts_.size());
  alive_ = static_cast<std::int64_t>(characters_);
  if (follows_all_) {
    least_ = 0;
    with_text([this](auto& text) { this->count_pairs(text, 0); });
  }
  choose_pairs(0);
  for (Pair& each : pairs_) {
    each.full = each.current;
    each.is_full = true;
  }
  fill_heap();
}

void Learner::read_word(std::string_view word, std::int64_t count, std::size_t cells) {
  old_.clear();
  for (std::size_t at = 0; at < word.size();) {
    const std::size_t begin = at;
    const char32_t c = next_code_point(word, at);
    const bool final = at == word.size();
    Symbol symbol = c < 128 ? ascii_[final][c] : kNoNumber;
    if (symbol == kNoNumber) {
      std::string text(word, begin, at - begin);
      if (final) text += kWordEnd;
      symbol = intern(text);
      if (c < 128) ascii_[final][c] = symbol;
    }
    old_.push_back(symbol);
    ++uses_[static_cast<std::size_t>(symbol)];
  }
  follows_all_ |= count == 0;
  widen_for(count, cells);
  with_text([&](auto& to) { to.add(count, old_); });
}

/// Wider cells, where a symbol or a count needs them.
void Learner::widen_for(std::int64_t count, std::size_t capacity) {
  if (wide_ || (narrow_->has_room(count) && std::cmp_less_equal(texts_.size(), narrow_->kMostSymbols))) return;
  wide_ = std::make_unique<BpeText<std::uint32_t>>(*narrow_, capacity);
  narrow_.reset();
}

Symbol Learner::intern(std::string_view text) {
  const Symbol symbol = texts_.add(text);
  if (static_cast<std::size_t>(symbol) == uses_.size()) {
    uses_.push_back(0);
    births_.push_back(0);
  }
  return symbol;
}

PairId Learner::add_pair(Key key) {
  const PairId id = index_.add(first_of(key), second_of(key));
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
  for (std::size_t i = 0; i < pairs_.size(); ++i)
    if (pairs_[i].is_current && pairs_[i].current > 0) heap_.push_back({pairs_[i].current, static_cast<PairId>(i)});
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
  return {0, kNoNumber};
}

std::int64_t Learner::highest_frequency() const {
  std::int64_t highest = 0;
  for (const Pair& each : pairs_)
    if (each.is_current) highest = std::max(highest, each.current);
  return highest;
}

/// Forgets the pairs below a frequency.
void Learner::keep_pairs(std::int64_t least) {
  const PairNumbering old_index = std::exchange(index_, {});
  std::size_t kept = 0;
  followed_.clear();
  for (std::size_t i = 0; i < pairs_.size(); ++i) {
    if (!pairs_[i].followed && pairs_[i].current < least) {
      places_.clear(pairs_[i].blocks);
      continue;
    }
    const auto old = static_cast<PairId>(i);
    const PairId id = index_.add(old_index.first(old), old_index.second(old));
    if (pairs_[i].followed) followed_.push_back(id);
    pairs_[kept++] = pairs_[i];
  }
  pairs_.resize(kept);
}

/// Stores the pairs of the frequency least_ and above, with their blocks, as the text has them. Where these are too
/// many, least_ is raised, but not above `most`.
template <class Cell>
void Learner::count_pairs(BpeText<Cell>& text, std::int64_t most) {
  keep_pairs(std::numeric_limits<std::int64_t>::max());
  places_.clear();
  for (Pair& each : pairs_) each.blocks = {};
  text.compact(least_ == kUnknown ? text.kLongBlock : text.kShortBlock);
  const auto each_pair = [&](auto&& take) {
    for (Place block = 0; block < text.blocks(); ++block)
      text.each_word(block, [&](std::uint32_t, std::int64_t count, std::span<const Cell> symbols) {
        for (std::size_t i = 0; i + 1 < symbols.size(); ++i)
          take(static_cast<Symbol>(symbols[i]), static_cast<Symbol>(symbols[i + 1]), count, block);
      });
  };
  // Pairs that share a number in a small table first: most of the rare ones are known by it.
  const std::size_t most_slots = least_ == kUnknown ? 1 << 16 : 1 << 20;  // a few are very frequent at first
  const std::size_t slots = std::bit_ceil(std::clamp<std::size_t>(text.size() / 16, 1 << 12, most_slots));
  const int shift = 64 - std::countr_zero(slots);
  const Pages memory(least_ > 1 ? slots * sizeof(std::uint32_t) : 0, PageSize::huge);
  const std::span<std::uint32_t> shared(reinterpret_cast<std::uint32_t*>(memory.data()),
                                        memory.size() / sizeof(std::uint32_t));
  const auto slot = [&](Symbol first, Symbol second) { return key_of(first, second) * 0x9E3779B97F4A7C15u >> shift; };
  constexpr std::int64_t highest = std::numeric_limits<std::uint32_t>::max();  // of the table: stands for more too
  const auto is_stored = [&](std::int64_t sum) { return sum >= std::min(least_, highest); };
  if (least_ > 1) {
    each_pair([&](Symbol first, Symbol second, std::int64_t count, Place) {
      std::uint32_t& sum = shared[slot(first, second)];
      sum = static_cast<std::uint32_t>(std::min(sum + std::min(count, highest), highest));
    });
    if (least_ == kUnknown)
      least_ = std::max<std::int64_t>(1, *std::max_element(shared.begin(), shared.end()) / kFrequencySpan);
    const auto stored = [&] { return std::count_if(shared.begin(), shared.end(), is_stored); };
    while (2 * least_ <= most && std::cmp_greater(stored(), kMostPairs)) least_ *= 2;
  }
  each_pair([&](Symbol first, Symbol second, std::int64_t count, Place block) {
    if (least_ > 1 && !is_stored(shared[slot(first, second)])) return;
    Pair& state = pair(add_pair(key_of(first, second)));
    if (!state.followed) state.current += count;
    places_.append(state.blocks, block);
  });
  for (Pair& each : pairs_) each.followed |= follows_all_;
  keep_pairs(least_);
}

/// The threshold below which the reference prunes when the most frequent pair occurs so often.
double Learner::threshold_after(std::int64_t frequency, std::int64_t merges) {
  if (pruned_at_ < 0) return static_cast<double>(frequency) / 10;
  return static_cast<double>(frequency * merges) / (static_cast<double>(merges) + 10000.0);
}

/// Sees to it that all pairs are stored that can be most frequent until refill() comes again: those not pruned.
void Learner::choose_pairs(std::int64_t merges) {
  for (std::int64_t highest = highest_frequency(); least_ > 1; highest = highest_frequency()) {
    const double threshold = threshold_after(highest, merges);
    if (highest >= least_ && threshold >= static_cast<double>(least_)) break;
    const std::int64_t most = least_ == kUnknown ? 0 : std::min(static_cast<std::int64_t>(threshold), highest);
    if (least_ != kUnknown)
      least_ =
          std::max<std::int64_t>(1, highest > 0 ? std::min(most, highest / kFrequencySpan) : least_ / kFrequencySpan);
    with_text([&](auto& text) { this->count_pairs(text, most); });
  }
}

/// Takes the rare ones of the followed pairs out of `current`.
void Learner::prune(std::int64_t merges) {
  for (const PairId id : followed_) {
    Pair& state = pair(id);
    if (!state.is_current || static_cast<double>(state.current) >= threshold_) continue;
    state.full = state.current < 0 ? state.full + state.current : state.current;
    state.is_full = true;
    state.current = 0;
    state.is_current = false;
  }
  decreases_.clear();
  pruned_at_ = merges;
}

/// Makes every pair current again, and prunes below a new threshold.
void Learner::refill(std::int64_t merges) {
  prune(merges);
  for (const PairId id : followed_) {
    Pair& state = pair(id);
    state.is_current = state.is_full;
    state.current = state.full;
  }
  choose_pairs(merges);
  keep_pairs(least_);
  for (Pair& state : pairs_)
    if (!state.followed) state.full = state.current, state.is_full = true;
  threshold_ = threshold_after(highest_frequency(), merges);
  prune(merges);
  fill_heap();
}

void Learner::decrease(Symbol first, Symbol second, std::int64_t by) {
  if (first == first_ && second == second_) return;  // the pair being merged becomes 0
  decreases_.emplace_back(key_of(first, second), by);
  const PairId id = index_.find(first, second);
  if (id == kNoNumber) return;
  pair(id).current -= by;
  pair(id).is_current = true;
}

/// A pair with a symbol that was not there before.
void Learner::create(Symbol first, Symbol second, Neighbour& found) {
  if (found.count >= least_) {
    const PairId id = add_pair(key_of(first, second));
    pair(id).current = found.count;
    pair(id).blocks = found.blocks;
    pair(id).followed = follows_all_;
    if (follows_all_) followed_.push_back(id);
    push(id);
  } else {
    places_.clear(found.blocks);
  }
  found = {};
}

/// Counts what a merge in words of their own symbols changes, when the merged symbol is new.
void Learner::apply() {
  for (const Symbol symbol : before_.found) {
    Neighbour& found = before_[symbol];
    decrease(symbol, first_, found.count);
    create(symbol, merged_, found);
  }
  for (const Symbol symbol : after_.found) {
    Neighbour& found = after_[symbol];
    decrease(second_, symbol, found.count);
    create(merged_, symbol, found);
  }
  if (!between_.blocks.empty()) {
    decrease(second_, first_, between_.count);
    create(merged_, merged_, between_);
  }
}

/// Merges in the words of a block, if the pair is there, and notes what stands around.
template <class Cell>
void Learner::merge_in_block(BpeText<Cell>& text, Place number) {
  auto& block = text.block(number);
  Cell* const cells = text.cells(block);
  const std::size_t size = block.length;
  const auto first = static_cast<Cell>(first_), second = static_cast<Cell>(second_);
  const auto find = [&](std::size_t from) { return text.find(cells, size, from, first, second); };
  std::size_t at = 0, put = 0, word = 0;  // where to go on, what is done, the count of the word
  std::int64_t count = 0;
  for (std::size_t i = find(0); i < size;) {
    // What is behind `at` has been moved, but for the cell right before it.
    if (i == 0 || cells[i - 1] == text.kEnd) {
      i = find(i + 1);  // a count that looks like a symbol
      continue;
    }
    const bool beside = at > 0 && i == at;  // of another place of the pair
    std::size_t begin = i;
    while (begin > at && cells[begin - 1] != text.kEnd) --begin;
    if (begin > at || at == 0) {
      word = begin;
      count = text.count(cells[begin]);
    }
    if (beside) {
      between_.count += count;
      places_.append(between_.blocks, number);
    } else if (i - 1 != word) {
      before_.note(static_cast<Symbol>(cells[i - 1]), count, number, places_);
    }
    const Cell next = cells[i + 2];
    const bool ends = next == text.kEnd, again = !ends && next == first && cells[i + 3] == second;
    if (!ends && !again) after_.note(static_cast<Symbol>(next), count, number, places_);
    if (leaves_places_ && (beside || (next == first && !again)))
      correct(key_of(first_, second_),
              block.first_word + static_cast<std::uint32_t>(std::count(cells, cells + put, text.kEnd) +
                                                            std::count(cells + at, cells + i, text.kEnd)),
              -1);
    std::copy(cells + at, cells + i, cells + put);
    put += i - at;
    cells[put++] = static_cast<Cell>(merged_);
    ++made_;
    at = i + 2;
    i = find(at);
  }
  if (at == 0) return;
  std::copy(cells + at, cells + size, cells + put);
  block.length = static_cast<std::uint32_t>(put + size - at);
}

void Learner::merge(PairId id, std::int64_t merges) {
  first_ = index_.first(id);
  second_ = index_.second(id);
  const std::int32_t symbols = texts_.size();
  merged_ = intern(std::string(texts_[first_]).append(texts_[second_]));
  made_again_ = texts_.size() == symbols;
  if (!made_again_) births_.back() = merges + 1;
  widen_for(0, narrow_ ? narrow_->size() : 0);
  before_.of.resize(uses_.size());
  after_.of.resize(uses_.size());
  made_ = 0;
  const Key key = key_of(first_, second_);
  leaves_places_ = first_ == second_ && can_come_again(first_);
  decreases_.emplace_back(key, pair(id).current);
  List blocks = std::exchange(pair(id).blocks, {});
  const auto found = corrections_.find(key);
  const bool exactly = made_again_ || found != corrections_.end();
  if (exactly) {
    const Corrections corrections =
        found == corrections_.end() ? Corrections() : std::move(corrections_.extract(found).mapped());
    with_text([&](auto& text) { merge_exactly(text, id, blocks, corrections); });
  } else {
    with_text([&](auto& text) { merge_in_blocks(text, blocks); });
  }
  places_.clear(blocks);
  exactly ? apply_exactly() : apply();
  before_.found.clear();
  after_.found.clear();
  pair(id).current = 0;
  pair(id).is_current = true;
  use(first_, -made_);
  use(second_, -made_);
  use(merged_, made_);
}

template <class Cell>
void Learner::merge_in_blocks(BpeText<Cell>& text, const List& blocks) {
  // The blocks lie anywhere in the memory, so the processor is told some steps before.
  constexpr std::size_t ahead = 8;
  std::array<Place, ahead> coming{};
  PlaceLists::Reader reader(places_, blocks);
  std::size_t read = 0, done = 0;
  for (Place place = 0; reader.next(place); ++read) {
    if (read >= ahead) merge_in_block(text, coming[done++ % ahead]);
    coming[read % ahead] = place;
    text.prefetch(place);
  }
  while (done < read) merge_in_block(text, coming[done++ % ahead]);
}

void Learner::use(Symbol symbol, std::int64_t by) {
  std::int64_t& uses = uses_[static_cast<std::size_t>(symbol)];
  const std::int64_t before = uses;
  uses += by;
  if (static_cast<std::size_t>(symbol) >= characters_) alive_ += (uses > 0) - (before > 0);
}

/// Whether merges may make a symbol that is there: not the characters within words.
bool Learner::can_come_again(Symbol symbol) const {
  return static_cast<std::size_t>(symbol) >= characters_ || texts_[symbol].ends_with(kWordEnd);
}

void Learner::correct(Key key, std::uint32_t word, std::int64_t by) {
  if (by != 0) corrections_[key][word] += static_cast<std::int32_t>(by);
}

/// A merge as the reference does it, in the words that its index has for the pair, whether they hold it or not.
template <class Cell>
void Learner::merge_exactly(BpeText<Cell>& text, PairId id, const List& listed, const Corrections& corrections) {
  const Key key = key_of(first_, second_);
  if (made_again_ && least_ > 1) find_unstored(text);
  if (recut_.empty()) recut_.resize(text.words());
  std::vector<Place> places;
  PlaceLists::Reader reader(places_, listed);
  for (Place place = 0; reader.next(place);) places.push_back(place);
  for (const auto& [word, by] : corrections) places.push_back(text.block_of(word));
  std::sort(places.begin(), places.end());
  places.erase(std::unique(places.begin(), places.end()), places.end());
  std::vector<Cell> merged;
  for (const Place place : places) {
    merged.clear();
    text.each_word(place, [&](std::uint32_t word, std::int64_t count, std::span<const Cell> symbols) {
      old_.assign(symbols.begin(), symbols.end());
      new_ = old_;
      std::int64_t there = 0;
      for (std::size_t i = 0; i + 1 < old_.size(); ++i) there += old_[i] == first_ && old_[i + 1] == second_;
      const auto correction = corrections.find(word);
      if (there + (correction == corrections.end() ? 0 : correction->second) > 0) {
        merge_word(word, count, place);
      } else if (there > 0) {
        correct(key, word, -there);
        places_.append(pair(id).blocks, place);
      }
      if (there > 0) recut_[word] = true;
      merged.push_back(symbols.data()[-1]);
      merged.insert(merged.end(), new_.begin(), new_.end());
      merged.push_back(text.kEnd);
    });
    auto& block = text.block(place);
    std::copy(merged.begin(), merged.end(), text.cells(block));
    block.length = static_cast<std::uint32_t>(merged.size());
  }
}

/// Merges in new_, and changes the frequencies and the index as the reference does: what is around every merged symbol
/// gains, even around one that stood there before.
void Learner::merge_word(std::uint32_t word, std::int64_t count, Place block) {
  std::vector<std::pair<Key, std::int64_t>> index;  // its changes, less those of the text
  const auto lose = [&](Symbol first, Symbol second) {
    index.emplace_back(key_of(first, second), -1);
    change(key_of(first, second), -count);
  };
  const auto gain = [&](Symbol first, Symbol second) {
    const Key key = key_of(first, second);
    index.emplace_back(key, 1);
    change(key, count);
    places_.append(changes_[key].blocks, block);
  };
  const auto size = old_.size();
  new_.clear();
  for (std::size_t i = 0; i < size;) {
    if (old_[i] != first_ || i + 1 >= size || old_[i + 1] != second_) {
      new_.push_back(old_[i++]);
      continue;
    }
    if (i > 0) lose(old_[i - 1], first_);
    const bool again = i + 3 < size && old_[i + 2] == first_ && old_[i + 3] == second_;
    if (i + 2 < size && !again) lose(second_, old_[i + 2]);
    new_.push_back(merged_);
    ++made_;
    i += 2;
  }
  for (std::size_t i = 0; i < new_.size(); ++i) {
    if (new_[i] != merged_) continue;
    if (i > 0) gain(new_[i - 1], merged_);
    if (i + 1 < new_.size() && new_[i + 1] != merged_) gain(merged_, new_[i + 1]);
  }
  // What the index had of the pair being merged was forgotten first.
  for (std::size_t i = 0; i + 1 < size; ++i)
    if (old_[i] != first_ || old_[i + 1] != second_) index.emplace_back(key_of(old_[i], old_[i + 1]), 1);
  for (std::size_t i = 0; i + 1 < new_.size(); ++i) index.emplace_back(key_of(new_[i], new_[i + 1]), -1);
  std::sort(index.begin(), index.end());
  for (std::size_t i = 0; i < index.size();) {
    std::int64_t sum = 0;
    const Key key = index[i].first;
    for (; i < index.size() && index[i].first == key; ++i) sum += index[i].second;
    correct(key, word, sum);
  }
}

void Learner::change(Key key, std::int64_t by) {
  if (key != key_of(first_, second_)) changes_[key].by += by;
}

/// Counts the pairs with the merged symbol that are not stored, before the merge.
template <class Cell>
void Learner::find_unstored(const BpeText<Cell>& text) {
  for (Place block = 0; block < text.blocks(); ++block)
    text.each_word(block, [&](std::uint32_t, std::int64_t count, std::span<const Cell> symbols) {
      for (std::size_t i = 0; i + 1 < symbols.size(); ++i) {
        const auto first = static_cast<Symbol>(symbols[i]), second = static_cast<Symbol>(symbols[i + 1]);
        if ((first != merged_ && second != merged_) || index_.find(first, second) != kNoNumber) continue;
        Neighbour& found = unstored_[key_of(first, second)];
        found.count += count;
        places_.append(found.blocks, block);
      }
    });
}

/// Begins to keep a pair as the reference has it.
PairId Learner::follow(Key key) {
  const std::size_t before = pairs_.size();
  const PairId id = add_pair(key);
  Pair& state = pair(id);
  if (state.followed) return id;
  if (pairs_.size() > before) {
    if (const auto found = unstored_.find(key); found != unstored_.end()) {
      state.current = found->second.count;
      state.blocks = std::exchange(found->second.blocks, {});
    }
  }
  state.followed = true;
  followed_.push_back(id);
  std::int64_t lost = 0;
  for (const auto& [decreased, by] : decreases_) lost += decreased == key ? by : 0;
  const std::int64_t birth =
      std::max(births_[static_cast<std::size_t>(first_of(key))], births_[static_cast<std::size_t>(second_of(key))]);
  if (birth <= pruned_at_ && static_cast<double>(state.current + lost) < threshold_) {
    state.full = state.current + lost;
    state.is_full = true;
    state.current = -lost;
    state.is_current = lost > 0;
  }
  return id;
}

/// Counts what merge_exactly() has changed.
void Learner::apply_exactly() {
  for (const auto& [key, each] : changes_)
    if (!each.blocks.empty()) follow(key);
  for (auto& [key, each] : changes_) {
    if (each.blocks.empty()) {
      decrease(first_of(key), second_of(key), -each.by);
      continue;
    }
    const PairId id = add_pair(key);
    pair(id).current += each.by;
    pair(id).is_current = true;
    PlaceLists::Reader reader(places_, each.blocks);
    List& blocks = pair(id).blocks;
    for (Place place = 0; reader.next(place);) places_.append(blocks, place);
    places_.clear(each.blocks);
    push(id);
  }
  changes_.clear();
  for (auto& [key, found] : unstored_) places_.clear(found.blocks);
  unstored_.clear();
}

/// Counts the pieces that the merges cut the words into, in the order of first occurrence, then the characters that do
/// not occur.
template <class Cell>
WordCounts Learner::count_pieces(const BpeText<Cell>& text, const BpeMerges& merges) const {
  const BpeEncoder encoder(recut_.empty() ? BpeMerges() : merges);
  WordCounts pieces;
  const auto name = [&](Symbol symbol, bool final) {
    const std::string_view named = texts_[symbol];
    return final ? std::string(named.substr(0, named.size() - kWordEnd.size()))
                 : std::string(named) + encoder.separator();
  };
  std::array<std::vector<WordCounts::Place>, 2>
      numbers;  // where the pieces are of symbols within and at the end of words
  for (auto& each : numbers) each.resize(uses_.size(), WordTable::kNoPlace);
  std::string whole;
  std::vector<std::size_t> ends;
  const auto cut_again = [&](std::span<const Cell> symbols, std::int64_t count) {
    whole.clear();
    for (const Cell symbol : symbols) whole += texts_[static_cast<Symbol>(symbol)];
    whole.resize(whole.size() - kWordEnd.size());
    encoder.segment(whole, ends);
    for (std::size_t i = 0, start = 0; i < ends.size(); start = ends[i++]) {
      const std::string piece = whole.substr(start, ends[i] - start);
      pieces.add(i + 1 < ends.size() ? piece + encoder.separator() : piece, count);
    }
  };
  for (Place block = 0; block < text.blocks(); ++block)
    text.each_word(block, [&](std::uint32_t word, std::int64_t count, std::span<const Cell> symbols) {
      if (!recut_.empty() && recut_[word]) return cut_again(symbols, count);
      for (std::size_t i = 0; i < symbols.size(); ++i) {
        const bool final = i + 1 == symbols.size();
        WordCounts::Place& number = numbers[final][symbols[i]];
        if (number == WordTable::kNoPlace) number = pieces.add(name(static_cast<Symbol>(symbols[i]), final), 0);
        pieces.add_to(number, count);
      }
    });
  for (std::size_t i = 0; i < characters_; ++i) {
    const auto symbol = static_cast<Symbol>(i);
    pieces.add(name(symbol, texts_[symbol].size() > kWordEnd.size()), 0);
  }
  return pieces;
}

BpeLearnt Learner::run(const std::function<void(std::int64_t)>& progress) {
  BpeLearnt learnt;
  auto& merges = learnt.merges.pairs;
  threshold_ = threshold_after(most_frequent().frequency, 0);
  for (std::int64_t i = 0; i < limits_.merges && alive_ < limits_.symbols; ++i) {
    Candidate best = most_frequent();
    if (best.pair < 0 || (i > 0 && static_cast<double>(best.frequency) < threshold_)) {
      refill(i);
      best = most_frequent();
    }
    if (best.pair < 0 || best.frequency < limits_.min_frequency) {
      learnt.exhausted = true;
      break;
    }
    merges.emplace_back(texts_[index_.first(best.pair)], texts_[index_.second(best.pair)]);
    merge(best.pair, i);
    if (i % 100 == 0) {
      prune(i + 1);
      if (progress) progress(i + 1);
    }
  }
  learnt.pieces = with_text([&](const auto& text) { return count_pieces(text, learnt.merges); });
  return learnt;
}

/// What BpeText needs for the words at most. Checks the limits too.
std::size_t most_cells(const WordCounts& words, const BpeLimits& limits) {
  if (limits.min_frequency < 1) throw UsageError("--min-frequency: must be at least 1");
  std::size_t cells = 0;
  for (std::size_t i = 0; i < words.size(); ++i) cells += words.word(i).size() + 2;
  if (cells >= PlaceLists::kNone)
    throw Error("the text has too many different words to learn from (" + std::to_string(words.size()) +
                "; leave out lines that are no sentences)");
  return cells;
}

}  // namespace

BpeLearnt learn_bpe(const WordCounts& words, const BpeLimits& limits,
                    const std::function<void(std::int64_t)>& progress) {
  const auto each_word = [&](auto&& take) {
    for (std::size_t i = 0; i < words.size(); ++i) take(words.word(i), words.count(i));
  };
  return Learner(most_cells(words, limits), each_word, limits).run(progress);
}

BpeLearnt learn_bpe(WordCounts&& words, const BpeLimits& limits, const std::function<void(std::int64_t)>& progress) {
  const auto each_word = [&](auto&& take) { words.consume(take); };
  return Learner(most_cells(words, limits), each_word, limits).run(progress);
}

}  // namespace heed
