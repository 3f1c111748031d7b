#include "heed/text/bpe/bpe_learner.h"

#include <algorithm>
#include <array>
#include <bit>
#include <memory>
#include <span>
#include <utility>

#include "heed/base/error.h"
#include "heed/base/pages.h"
#include "heed/text/bpe/bpe_exact_merge.h"
#include "heed/text/bpe/bpe_pairs.h"
#include "heed/text/bpe/bpe_text.h"
#include "heed/text/bpe/posting_lists.h"
#include "heed/text/strings/scan.h"
#include "heed/text/strings/string_ids.h"

namespace heed {

namespace {

using Symbol = BpePairs::Symbol;
using Place = std::uint32_t;
constexpr std::string_view kWordEnd = "</w>";

/// Learns with lists of the blocks of words in which frequent pairs occur, so that a merge searches these only. Rare
/// pairs are not stored: the text is counted again when their time comes. Merges that must go the reference's own way
/// are left to a BpeExactMerger.
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

  using Neighbour = BpePairs::Occurrences;
  /// What stands beside the places of a merge: how often, and where.
  struct Neighbours {
    std::vector<Neighbour> of;  // per symbol
    std::vector<Symbol> found;
    Neighbour& operator[](Symbol symbol) { return of[static_cast<std::size_t>(symbol)]; }
    void note(Symbol symbol, std::int64_t count, Place block, PostingLists& postings) {
      Neighbour& neighbour = (*this)[symbol];
      if (neighbour.blocks.empty()) found.push_back(symbol);
      neighbour.count += count;
      postings.append(neighbour.blocks, block);
    }
  };

  void read_word(std::string_view word, std::int64_t count, std::size_t cells);
  void widen_for(std::int64_t count, std::size_t capacity);
  Symbol intern(std::string_view text);
  template <class Cell>
  void count_pairs(BpeText<Cell>& text, std::int64_t most);
  void choose_pairs(std::int64_t merges);
  void refill(std::int64_t merges);

  void merge(BpePairs::Id id, std::int64_t merges);
  template <class Cell>
  void merge_in_blocks(BpeText<Cell>& text, const BpePairs::List& blocks);
  template <class Cell>
  void merge_in_block(BpeText<Cell>& text, Place number);
  void decrease(Symbol first, Symbol second, std::int64_t by);
  void create(Symbol first, Symbol second, Neighbour& found);
  void apply();
  void use(Symbol symbol, std::int64_t by);
  bool can_come_again(Symbol symbol) const;

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
  StringIds texts_;
  std::array<std::array<Symbol, 128>, 2> ascii_;  // symbols of ASCII characters within and at the end of words
  std::vector<Symbol> word_;                      // the word being read
  std::vector<std::int64_t> uses_;                // per symbol: occurrences in different words
  std::size_t characters_ = 0;                    // symbols there from the start
  std::int64_t alive_ = 0;                        // those, and the merged ones in use

  std::int64_t least_ = kUnknown;  // the frequency of stored pairs, but for followed ones
  BpePairs pairs_{texts_};
  BpeExactMerger exact_{pairs_};

  // Of the merge at work:
  BpeMerge merge_;
  bool leaves_places_ = false;  // the reference's index has places of the pair left
  Neighbours before_, after_;
  Neighbour between_;  // merged symbols side by side
};

template <class EachWord>
Learner::Learner(std::size_t cells, EachWord&& each_word, const BpeLimits& limits)
    : limits_(limits), narrow_(std::make_unique<BpeText<std::uint16_t>>(cells)) {
  for (auto& table : ascii_) table.fill(kNoId);
  each_word([&](std::string_view word, std::int64_t count) { read_word(word, count, cells); });
  characters_ = static_cast<std::size_t>(texts_.size());
  alive_ = static_cast<std::int64_t>(characters_);
  if (follows_all_) {
    least_ = 0;
    with_text([this](auto& text) { this->count_pairs(text, 0); });
  }
  choose_pairs(0);
  pairs_.start();
}

void Learner::read_word(std::string_view word, std::int64_t count, std::size_t cells) {
  word_.clear();
  for (std::size_t at = 0; at < word.size();) {
    const std::size_t begin = at;
    const char32_t c = next_code_point(word, at);
    const bool final = at == word.size();
    Symbol symbol = c < 128 ? ascii_[final][c] : kNoId;
    if (symbol == kNoId) {
      std::string text(word, begin, at - begin);
      if (final) text += kWordEnd;
      symbol = intern(text);
      if (c < 128) ascii_[final][c] = symbol;
    }
    word_.push_back(symbol);
    ++uses_[static_cast<std::size_t>(symbol)];
  }
  follows_all_ |= count == 0;
  widen_for(count, cells);
  with_text([&](auto& to) { to.add(count, word_); });
}

/// Wider cells, where a symbol or a count needs them.
void Learner::widen_for(std::int64_t count, std::size_t capacity) {
  if (wide_ || (narrow_->has_room(count) && std::cmp_less_equal(texts_.size(), narrow_->kMostSymbols))) return;
  wide_ = std::make_unique<BpeText<std::uint32_t>>(*narrow_, capacity);
  narrow_.reset();
}

Symbol Learner::intern(std::string_view text) {
  const Symbol symbol = texts_.add(text);
  if (static_cast<std::size_t>(symbol) == uses_.size()) uses_.push_back(0);
  return symbol;
}

/// Stores the pairs of the frequency least_ and above, with their blocks, as the text has them. Where these are too
/// many, least_ is raised, but not above `most`.
template <class Cell>
void Learner::count_pairs(BpeText<Cell>& text, std::int64_t most) {
  pairs_.keep_followed();
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
  const auto slot = [&](Symbol first, Symbol second) {
    return BpePairs::key_of(first, second) * 0x9E3779B97F4A7C15u >> shift;
  };
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
    pairs_.count(BpePairs::key_of(first, second), count, block);
  });
  for (BpePairs::Pair& each : pairs_.all()) each.followed |= follows_all_;
  pairs_.keep(least_);
}

/// Sees to it that all pairs are stored that can be most frequent until refill() comes again: those not pruned.
void Learner::choose_pairs(std::int64_t merges) {
  for (std::int64_t highest = pairs_.highest_frequency(); least_ > 1; highest = pairs_.highest_frequency()) {
    const double threshold = pairs_.threshold_after(highest, merges);
    if (highest >= least_ && threshold >= static_cast<double>(least_)) break;
    const std::int64_t most = least_ == kUnknown ? 0 : std::min(static_cast<std::int64_t>(threshold), highest);
    if (least_ != kUnknown)
      least_ =
          std::max<std::int64_t>(1, highest > 0 ? std::min(most, highest / kFrequencySpan) : least_ / kFrequencySpan);
    with_text([&](auto& text) { this->count_pairs(text, most); });
  }
}

/// Makes every pair current again, and prunes below a new threshold.
void Learner::refill(std::int64_t merges) {
  pairs_.restore(merges);
  choose_pairs(merges);
  pairs_.start_again(least_, merges);
}

void Learner::decrease(Symbol first, Symbol second, std::int64_t by) {
  if (first == merge_.first && second == merge_.second) return;  // the pair being merged is used up
  pairs_.decrease(first, second, by);
}

/// A pair with a symbol that was not there before.
void Learner::create(Symbol first, Symbol second, Neighbour& found) {
  if (found.count >= least_)
    pairs_.create(BpePairs::key_of(first, second), found, follows_all_);
  else
    pairs_.posting_lists().clear(found.blocks);
  found = {};
}

/// Counts what a merge in words of their own symbols changes, when the merged symbol is new.
void Learner::apply() {
  for (const Symbol symbol : before_.found) {
    Neighbour& found = before_[symbol];
    decrease(symbol, merge_.first, found.count);
    create(symbol, merge_.merged, found);
  }
  for (const Symbol symbol : after_.found) {
    Neighbour& found = after_[symbol];
    decrease(merge_.second, symbol, found.count);
    create(merge_.merged, symbol, found);
  }
  if (!between_.blocks.empty()) {
    decrease(merge_.second, merge_.first, between_.count);
    create(merge_.merged, merge_.merged, between_);
  }
  before_.found.clear();
  after_.found.clear();
}

/// Merges in the words of a block, if the pair is there, and notes what stands around.
template <class Cell>
void Learner::merge_in_block(BpeText<Cell>& text, Place number) {
  PostingLists& postings = pairs_.posting_lists();
  auto& block = text.block(number);
  Cell* const cells = text.cells(block);
  const std::size_t size = block.length;
  const auto first = static_cast<Cell>(merge_.first), second = static_cast<Cell>(merge_.second);
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
      postings.append(between_.blocks, number);
    } else if (i - 1 != word) {
      before_.note(static_cast<Symbol>(cells[i - 1]), count, number, postings);
    }
    const Cell next = cells[i + 2];
    const bool ends = next == text.kEnd, again = !ends && next == first && cells[i + 3] == second;
    if (!ends && !again) after_.note(static_cast<Symbol>(next), count, number, postings);
    if (leaves_places_ && (beside || (next == first && !again)))
      exact_.correct(merge_.key(),
                     block.first_word + static_cast<std::uint32_t>(std::count(cells, cells + put, text.kEnd) +
                                                                   std::count(cells + at, cells + i, text.kEnd)),
                     -1);
    std::copy(cells + at, cells + i, cells + put);
    put += i - at;
    cells[put++] = static_cast<Cell>(merge_.merged);
    ++merge_.made;
    at = i + 2;
    i = find(at);
  }
  if (at == 0) return;
  std::copy(cells + at, cells + size, cells + put);
  block.length = static_cast<std::uint32_t>(put + size - at);
}

void Learner::merge(BpePairs::Id id, std::int64_t merges) {
  const Symbol first = pairs_.first(id), second = pairs_.second(id);
  const std::int32_t symbols = texts_.size();
  const Symbol merged = intern(std::string(texts_[first]).append(texts_[second]));
  merge_ = {.first = first, .second = second, .merged = merged, .again = texts_.size() == symbols};
  if (!merge_.again) pairs_.note_birth(merged, merges + 1);
  widen_for(0, narrow_ ? narrow_->size() : 0);
  before_.of.resize(uses_.size());
  after_.of.resize(uses_.size());
  leaves_places_ = first == second && can_come_again(first);
  BpePairs::List blocks = pairs_.use_up(id);
  if (exact_.is_needed(merge_)) {
    with_text([&](auto& text) { exact_.merge(text, merge_, id, blocks, least_ <= 1); });
    pairs_.posting_lists().clear(blocks);
  } else {
    with_text([&](auto& text) { merge_in_blocks(text, blocks); });
    pairs_.posting_lists().clear(blocks);
    apply();
  }
  use(first, -merge_.made);
  use(second, -merge_.made);
  use(merged, merge_.made);
}

template <class Cell>
void Learner::merge_in_blocks(BpeText<Cell>& text, const BpePairs::List& blocks) {
  // The blocks lie anywhere in the memory, so the processor is told some steps before: of a block, then of its cells.
  constexpr std::size_t block_ahead = 16, cells_ahead = 8;
  std::array<Place, block_ahead> coming{};
  PostingLists::Reader reader(pairs_.posting_lists(), blocks);
  std::size_t read = 0;
  const auto step = [&](std::size_t i) {
    if (i >= cells_ahead && i < read + cells_ahead) text.prefetch_cells(coming[(i - cells_ahead) % block_ahead]);
    if (i >= block_ahead) merge_in_block(text, coming[i % block_ahead]);
  };
  for (Place place = 0; reader.next(place); ++read) {
    step(read);
    text.prefetch_block(place);
    coming[read % block_ahead] = place;
  }
  for (std::size_t i = read; i < read + block_ahead; ++i) step(i);
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

/// Counts the pieces that the merges cut the words into, in the order of first occurrence, then the characters that do
/// not occur.
template <class Cell>
WordCounts Learner::count_pieces(const BpeText<Cell>& text, const BpeMerges& merges) const {
  const BpeEncoder encoder(exact_.any_recut() ? merges : BpeMerges());
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
      if (exact_.is_recut(word)) return cut_again(symbols, count);
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
  for (std::int64_t i = 0; i < limits_.merges && alive_ < limits_.symbols; ++i) {
    BpePairs::Candidate best = pairs_.most_frequent();
    if (best.pair < 0 || (i > 0 && static_cast<double>(best.frequency) < pairs_.threshold())) {
      refill(i);
      best = pairs_.most_frequent();
    }
    if (best.pair < 0 || best.frequency < limits_.min_frequency) {
      learnt.exhausted = true;
      break;
    }
    merges.emplace_back(texts_[pairs_.first(best.pair)], texts_[pairs_.second(best.pair)]);
    merge(best.pair, i);
    if (i % 100 == 0) {
      pairs_.prune(i + 1);
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
  if (cells >= PostingLists::kNone)
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
