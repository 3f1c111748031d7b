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
using BlockNumber = std::uint32_t;

/// The BPE learner. bpe_learner.h explains the idea, and defines the words stored, followed, current, full, block and
/// cell. One step of run():
/// 1. BpePairs gives the most frequent pair, for example `s t</w>` (9 times, in block 1).
/// 2. merge() searches the pair's blocks only, in the example block 1, and replaces each occurrence of the pair by the
///    merged symbol `st</w>`. Block 1 holds two words, each between the word's count and the mark kEnd:
///        before    6 n e w e s t</w> kEnd 3 w i d e s t</w> kEnd
///        after     6 n e w e st</w> kEnd 3 w i d e st</w> kEnd
/// 3. Meanwhile merge() notes the symbols beside the occurrences: `e` stood before an occurrence 6 + 3 = 9 times.
/// 4. update_frequencies() uses these notes: `e s` loses 9 of its occurrences, and the new pair `e st</w>` gets 9.
///
/// Only frequent pairs are stored. When the most frequent stored pair has become too rare, the learner counts the text
/// again and stores rarer pairs. A merge for which learn-bpe would count wrongly is left to a BpeExactMerger.
class BpeLearner {
 public:
  /// Stores the words of a text, and counts the pairs of neighbouring symbols. `cells` is an upper bound of the number
  /// of cells (array elements) that BpeText needs for the words. each_word(take) must call take(word, count) for each
  /// word.
  template <class EachWord>
  BpeLearner(std::size_t cells, EachWord&& each_word, const BpeLimits& limits);
  /// Learns all merges up to the limits, and returns the result of learn_bpe(). Calls `progress` as learn_bpe() does.
  BpeLearnt run(const std::function<void(std::int64_t)>& progress);

 private:
  static constexpr std::int64_t kUnknown = std::numeric_limits<std::int64_t>::max();
  // When pairs are counted, only the pairs with at least a sixteenth of the frequency of the most frequent pair are
  // stored; rarer pairs are stored when they are needed.
  static constexpr std::int64_t kFrequencySpan = 16;
  // The learner tries to store no more than about this number of pairs of symbols. More pairs are stored only if the
  // next merges need more.
  static constexpr std::size_t kMostPairs = 1 << 16;

  using Neighbour = BpePairs::Occurrences;
  /// The symbols that stand on one side (before or after) of the places in the text where a pair is merged: for each
  /// symbol how often the symbol stands there, and in which blocks of words.
  struct Neighbours {
    std::vector<Neighbour> by_symbol;
    std::vector<Symbol> symbols;  // the symbols that stand beside at least one merged pair
    Neighbour& operator[](Symbol symbol) { return by_symbol[static_cast<std::size_t>(symbol)]; }
    /// Records that `symbol` stands beside a place where a pair is merged, in a word that occurs `count` times in the
    /// text and is stored in the block number `block`. `postings` is the pool that stores lists of blocks.
    void note(Symbol symbol, std::int64_t count, BlockNumber block, PostingLists& postings) {
      Neighbour& neighbour = (*this)[symbol];
      if (neighbour.blocks.empty()) symbols.push_back(symbol);
      neighbour.count += count;
      postings.append(neighbour.blocks, block);
    }
  };

  void read_word(std::string_view word, std::int64_t count, std::size_t cells);
  void widen_cells_if_needed(std::int64_t count, std::size_t capacity);
  Symbol intern(std::string_view text);
  template <class Cell>
  void count_pairs(BpeText<Cell>& text, std::int64_t most);
  void store_needed_pairs(std::int64_t merges);
  void refill(std::int64_t merges);

  void merge(BpePairs::Id id, std::int64_t merges);
  template <class Cell>
  void merge_in_blocks(BpeText<Cell>& text, const BpePairs::List& blocks);
  template <class Cell>
  void merge_in_block(BpeText<Cell>& text, BlockNumber number);
  void decrease(Symbol first, Symbol second, std::int64_t by);
  void create(Symbol first, Symbol second, Neighbour& found);
  void update_frequencies();
  void add_uses(Symbol symbol, std::int64_t by);
  bool can_be_made_again(Symbol symbol) const;

  template <class Cell>
  WordCounts count_pieces(const BpeText<Cell>& text, const BpeMerges& merges) const;

  template <class Function>
  auto with_text(Function&& function) {
    return wide_ ? function(*wide_) : function(*narrow_);
  }

  BpeLimits limits_;
  // The words of the text. narrow_ stores each symbol in 16 bits. When 16 bits are not enough for all symbols and
  // counts, the words are moved to wide_, which has 32 bits for each symbol. One of the two pointers is null.
  std::unique_ptr<BpeText<std::uint16_t>> narrow_;
  std::unique_ptr<BpeText<std::uint32_t>> wide_;
  // Whether BpePairs holds the frequencies that subword-nmt's learn-bpe has for every pair. This is needed if a word of
  // the text has the count 0. A merge in such a word adds 0 to the frequency of a pair that learn-bpe has pruned
  // (removed from its table of frequent pairs), and at the next pruning learn-bpe replaces the saved frequency of the
  // pair by 0.
  bool follows_all_ = false;
  // An interner, which gives the text of each symbol an id. The learner stores a symbol as this id.
  StringIds texts_;
  // For each ASCII character the symbol of the character inside a word (ascii_[0]) and at the end of a word
  // (ascii_[1]).
  std::array<std::array<Symbol, 128>, 2> ascii_;
  std::vector<Symbol> word_;  // the symbols of the word that read_word() is reading
  // For each symbol the number of occurrences in the different words of the text; a word's count does not matter.
  std::vector<std::int64_t> uses_;
  std::size_t characters_ = 0;  // number of symbols that are single characters
  // The number of different single characters, plus the number of different merged symbols that occur in the text now.
  std::int64_t symbols_in_use_ = 0;

  // A frequency of pairs. pairs_ holds every pair that occurs at least this often in the text, and of the rarer pairs
  // only the pairs marked as `followed`, for which pairs_ holds the frequencies of subword-nmt's learn-bpe.
  std::int64_t least_frequency_ = kUnknown;
  BpePairs pairs_{texts_};
  BpeExactMerger exact_{pairs_};

  // The merge that is being applied. The members below are the state of this merge.
  BpeMerge merge_;
  // Whether subword-nmt's learn-bpe may record a negative number of occurrences of the merged pair for a word (an error
  // of learn-bpe), and the pair may occur in the text again, so that the negative number has an effect.
  bool index_gets_negative_ = false;
  // The symbols that stand directly before and directly after the places in the text where the pair is merged.
  Neighbours before_, after_;
  // How often the merged pair stands twice side by side, as `a b` in `a b a b`, and in which blocks of words.
  Neighbour between_;
};

template <class EachWord>
BpeLearner::BpeLearner(std::size_t cells, EachWord&& each_word, const BpeLimits& limits)
    : limits_(limits), narrow_(std::make_unique<BpeText<std::uint16_t>>(cells)) {
  for (auto& table : ascii_) table.fill(kNoId);
  each_word([&](std::string_view word, std::int64_t count) { read_word(word, count, cells); });
  characters_ = static_cast<std::size_t>(texts_.size());
  symbols_in_use_ = static_cast<std::int64_t>(characters_);
  if (follows_all_) {
    least_frequency_ = 0;
    with_text([this](auto& text) { this->count_pairs(text, 0); });
  }
  store_needed_pairs(0);
  pairs_.start();
}

/// Adds a word that occurs `count` times to the learner's text: splits the word into characters, and stores the symbol
/// of each character. `cells` is the number of cells (array elements) that all words together need at most.
void BpeLearner::read_word(std::string_view word, std::int64_t count, std::size_t cells) {
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
  widen_cells_if_needed(count, cells);
  with_text([&](auto& to) { to.add(count, word_); });
}

/// Copies the words of the text from narrow_, which has 16 bits for each symbol and count, to wide_, which has 32 bits,
/// if 16 bits are not enough for a new word that occurs `count` times or for the ids of all symbols. `capacity` is the
/// number of cells (array elements) for which the copy must have room.
void BpeLearner::widen_cells_if_needed(std::int64_t count, std::size_t capacity) {
  if (wide_ || (narrow_->has_room(count) && std::cmp_less_equal(texts_.size(), narrow_->kMostSymbols))) return;
  wide_ = std::make_unique<BpeText<std::uint32_t>>(*narrow_, capacity);
  narrow_.reset();
}

/// Returns the symbol with the text `text`. Makes a new symbol if no symbol has this text.
Symbol BpeLearner::intern(std::string_view text) {
  const Symbol symbol = texts_.add(text);
  if (static_cast<std::size_t>(symbol) == uses_.size()) uses_.push_back(0);
  return symbol;
}

/// Counts the pairs of neighbouring symbols in the text, and stores in pairs_ all pairs of frequency least_frequency_
/// or more, with the blocks of words that hold each pair. If these pairs are too many, raises least_frequency_ first,
/// but not above `most`. If least_frequency_ is kUnknown, sets least_frequency_ to about a sixteenth of the highest
/// frequency.
///
/// A table of all pairs would be too large, so that the text is read twice. The first reading adds up frequencies in a
/// small table of sums. A pair's hash says to which sum the pair's frequency is added, and many pairs have the same
/// sum: a pair whose sum is below least_frequency_ is certainly too rare. The second reading counts only the other
/// pairs. At the end the function removes the pairs that turned out to be too rare.
template <class Cell>
void BpeLearner::count_pairs(BpeText<Cell>& text, std::int64_t most) {
  pairs_.keep_followed();
  text.compact(least_frequency_ == kUnknown ? text.kLongBlock : text.kShortBlock);
  const auto each_pair = [&](auto&& take) {
    for (BlockNumber block = 0; block < text.blocks(); ++block)
      text.each_word(block, [&](std::uint32_t, std::int64_t count, std::span<const Cell> symbols) {
        for (std::size_t i = 0; i + 1 < symbols.size(); ++i)
          take(static_cast<Symbol>(symbols[i]), static_cast<Symbol>(symbols[i + 1]), count, block);
      });
  };
  // The highest number of elements of the table `shared`, in which the frequencies of pairs are added up; several pairs
  // have one element in common. As long as least_frequency_ is kUnknown, only few, very frequent pairs are wanted, and
  // a small table, which fits in the processor's cache, is enough.
  const std::size_t most_slots = least_frequency_ == kUnknown ? 1 << 16 : 1 << 20;
  const std::size_t slots = std::bit_ceil(std::clamp<std::size_t>(text.size() / 16, 1 << 12, most_slots));
  const int shift = 64 - std::countr_zero(slots);
  const Pages memory(least_frequency_ > 1 ? slots * sizeof(std::uint32_t) : 0, PageSize::huge);
  const std::span<std::uint32_t> shared(reinterpret_cast<std::uint32_t*>(memory.data()),
                                        memory.size() / sizeof(std::uint32_t));
  // Returns the index of the element of the table `shared` to which the frequency of a pair is added.
  const auto slot = [&](Symbol first, Symbol second) {
    return BpePairs::key_of(first, second) * 0x9E3779B97F4A7C15u >> shift;
  };
  // The highest value of an element of the table `shared`, in which frequencies of pairs are added up. A larger sum is
  // replaced by this value.
  constexpr std::int64_t highest = std::numeric_limits<std::uint32_t>::max();
  const auto is_stored = [&](std::int64_t sum) { return sum >= std::min(least_frequency_, highest); };
  if (least_frequency_ > 1) {
    each_pair([&](Symbol first, Symbol second, std::int64_t count, BlockNumber) {
      std::uint32_t& sum = shared[slot(first, second)];
      sum = static_cast<std::uint32_t>(std::min(sum + std::min(count, highest), highest));
    });
    if (least_frequency_ == kUnknown)
      least_frequency_ = std::max<std::int64_t>(1, *std::max_element(shared.begin(), shared.end()) / kFrequencySpan);
    const auto stored = [&] { return std::count_if(shared.begin(), shared.end(), is_stored); };
    while (2 * least_frequency_ <= most && std::cmp_greater(stored(), kMostPairs)) least_frequency_ *= 2;
  }
  each_pair([&](Symbol first, Symbol second, std::int64_t count, BlockNumber block) {
    if (least_frequency_ > 1 && !is_stored(shared[slot(first, second)])) return;
    pairs_.count(BpePairs::key_of(first, second), count, block);
  });
  for (BpePairs::Pair& each : pairs_.all()) each.followed |= follows_all_;
  pairs_.keep(least_frequency_);
}

/// Stores in pairs_ all pairs that can become the most frequent pair before the next call of refill(). These are the
/// pairs that are not below the threshold of frequency at which subword-nmt's learn-bpe removes pairs from its table of
/// frequent pairs. `merges` is the number of merges done so far.
void BpeLearner::store_needed_pairs(std::int64_t merges) {
  for (std::int64_t highest = pairs_.highest_frequency(); least_frequency_ > 1; highest = pairs_.highest_frequency()) {
    const double threshold = pairs_.threshold_after(highest, merges);
    if (highest >= least_frequency_ && threshold >= static_cast<double>(least_frequency_)) break;
    const std::int64_t most =
        least_frequency_ == kUnknown ? 0 : std::min(static_cast<std::int64_t>(threshold), highest);
    if (least_frequency_ != kUnknown)
      least_frequency_ = std::max<std::int64_t>(
          1, highest > 0 ? std::min(most, highest / kFrequencySpan) : least_frequency_ / kFrequencySpan);
    with_text([&](auto& text) { this->count_pairs(text, most); });
  }
}

/// Does what subword-nmt's learn-bpe does when all pairs in its table of frequent pairs have become rarer than a
/// threshold: puts every pair back into the table, stores the pairs that are needed from now on, computes a new
/// threshold, and removes the pairs below the new threshold. `merges` is the number of merges done so far.
void BpeLearner::refill(std::int64_t merges) {
  pairs_.restore(merges);
  store_needed_pairs(merges);
  pairs_.start_again(least_frequency_, merges);
}

/// Subtracts `by` from the frequency of a pair, unless the pair is the one that is being merged.
void BpeLearner::decrease(Symbol first, Symbol second, std::int64_t by) {
  // The frequency of the pair that is being merged is 0 already: BpePairs::use_up() has set it.
  if (first == merge_.first && second == merge_.second) return;
  pairs_.decrease(first, second, by);
}

/// Stores the new pair of the symbols `first` and `second`, at least one of which the present merge has made, if the
/// pair is frequent enough. `found` holds the pair's occurrences in the text, and is emptied.
void BpeLearner::create(Symbol first, Symbol second, Neighbour& found) {
  if (found.count >= least_frequency_)
    pairs_.create(BpePairs::key_of(first, second), found, follows_all_);
  else
    pairs_.posting_lists().clear(found.blocks);
  found = {};
}

/// Updates the frequencies of the pairs that the present merge has changed, which are the pairs of a merged symbol and
/// the symbol before or after the merged symbol. Reads before_, after_ and between_, and empties these three members.
/// May be called only for a merge that makes a new symbol.
void BpeLearner::update_frequencies() {
  for (const Symbol symbol : before_.symbols) {
    Neighbour& found = before_[symbol];
    decrease(symbol, merge_.first, found.count);
    create(symbol, merge_.merged, found);
  }
  for (const Symbol symbol : after_.symbols) {
    Neighbour& found = after_[symbol];
    decrease(merge_.second, symbol, found.count);
    create(merge_.merged, symbol, found);
  }
  if (!between_.blocks.empty()) {
    decrease(merge_.second, merge_.first, between_.count);
    create(merge_.merged, merge_.merged, between_);
  }
  before_.symbols.clear();
  after_.symbols.clear();
}

/// Replaces each occurrence of the pair that is being merged by the merged symbol in the words of one block. Records
/// the symbols beside the occurrences in before_, after_ and between_.
template <class Cell>
void BpeLearner::merge_in_block(BpeText<Cell>& text, BlockNumber number) {
  PostingLists& postings = pairs_.posting_lists();
  auto& block = text.block(number);
  Cell* const cells = text.cells(block);
  const std::size_t size = block.length;
  const auto first = static_cast<Cell>(merge_.first), second = static_cast<Cell>(merge_.second);
  const auto find = [&](std::size_t from) { return text.find(cells, size, from, first, second); };
  std::size_t at = 0;   // the block's cells [0, at) have been copied already, or replaced by merged symbols
  std::size_t put = 0;  // the index in the block to which the next cell is copied
  // The index in the block of the first cell of the present word. This cell holds the count of the word.
  std::size_t word = 0;
  std::int64_t count = 0;
  std::uint32_t number_of_word = block.first_word;  // the index of the word that holds the cell `at`
  for (std::size_t i = find(0); i < size;) {
    // The first cell of a word holds the word's count. A match at this cell is no occurrence of the pair: the count
    // happens to equal the id of the symbol `first`. The cell before a match has not been overwritten.
    if (i == 0 || cells[i - 1] == text.kEnd) {
      i = find(i + 1);
      continue;
    }
    const bool beside = at > 0 && i == at;  // whether the same pair stands directly before this occurrence of the pair
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
    // For a pair of two equal symbols, as in `a a a`, subword-nmt's learn-bpe counts overlapping occurrences too, and
    // then records a negative number of occurrences for the word. BpeExactMerger has to know the difference.
    if (index_gets_negative_) {
      number_of_word += static_cast<std::uint32_t>(std::count(cells + at, cells + i, text.kEnd));
      if (beside || (next == first && !again)) exact_.correct(merge_.key(), number_of_word, -1);
    }
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

/// Applies the next merge: merges the pair `id` in the whole text, and updates the table of pairs. `merges` is the
/// number of merges done so far.
void BpeLearner::merge(BpePairs::Id id, std::int64_t merges) {
  const Symbol first = pairs_.first(id), second = pairs_.second(id);
  const std::int32_t symbols = texts_.size();
  const Symbol merged = intern(std::string(texts_[first]).append(texts_[second]));
  merge_ = {.first = first, .second = second, .merged = merged, .again = texts_.size() == symbols};
  if (!merge_.again) pairs_.note_birth(merged, merges + 1);
  widen_cells_if_needed(0, narrow_ ? narrow_->size() : 0);
  before_.by_symbol.resize(uses_.size());
  after_.by_symbol.resize(uses_.size());
  index_gets_negative_ = first == second && can_be_made_again(first);
  BpePairs::List blocks = pairs_.use_up(id);
  if (exact_.is_needed(merge_)) {
    with_text([&](auto& text) { exact_.merge(text, merge_, id, blocks, least_frequency_ <= 1); });
    pairs_.posting_lists().clear(blocks);
  } else {
    with_text([&](auto& text) { merge_in_blocks(text, blocks); });
    pairs_.posting_lists().clear(blocks);
    update_frequencies();
  }
  add_uses(first, -merge_.made);
  add_uses(second, -merge_.made);
  add_uses(merged, merge_.made);
}

/// Calls merge_in_block() for each block of words in the list `blocks`. The blocks are far apart in memory. Therefore
/// the function prefetches each block's Block into the processor's cache 16 blocks before the block is searched, and
/// the block's first cells 8 blocks before.
template <class Cell>
void BpeLearner::merge_in_blocks(BpeText<Cell>& text, const BpePairs::List& blocks) {
  constexpr std::size_t block_ahead = 16, cells_ahead = 8;
  std::array<BlockNumber, block_ahead> coming{};  // the numbers of the next 16 blocks to search, as a ring buffer
  PostingLists::Reader reader(pairs_.posting_lists(), blocks);
  std::size_t read = 0;
  const auto step = [&](std::size_t i) {
    if (i >= cells_ahead && i < read + cells_ahead) text.prefetch_cells(coming[(i - cells_ahead) % block_ahead]);
    if (i >= block_ahead) merge_in_block(text, coming[i % block_ahead]);
  };
  for (BlockNumber number = 0; reader.next(number); ++read) {
    step(read);
    text.prefetch_block(number);
    coming[read % block_ahead] = number;
  }
  for (std::size_t i = read; i < read + block_ahead; ++i) step(i);
}

/// Adds `by` to uses_[symbol], the number of occurrences of a symbol, and updates symbols_in_use_.
void BpeLearner::add_uses(Symbol symbol, std::int64_t by) {
  std::int64_t& uses = uses_[static_cast<std::size_t>(symbol)];
  const std::int64_t before = uses;
  uses += by;
  if (static_cast<std::size_t>(symbol) >= characters_) symbols_in_use_ += (uses > 0) - (before > 0);
}

/// Returns whether a later merge may make a symbol with the same text as `symbol`, which already exists. No merge makes
/// a single character without the mark `</w>` of the word's end. But if the text itself contains the characters `</w>`,
/// a merge can make a symbol with the same text as a single character with the mark.
bool BpeLearner::can_be_made_again(Symbol symbol) const {
  return static_cast<std::size_t>(symbol) >= characters_ || texts_[symbol].ends_with(kWordEnd);
}

/// Returns the value for BpeLearnt::pieces: the pieces of words into which `merges` cut the text, with their counts, in
/// the order of first occurrence; then, with count 0, the single characters that are no pieces of the text.
template <class Cell>
WordCounts BpeLearner::count_pieces(const BpeText<Cell>& text, const BpeMerges& merges) const {
  const BpeEncoder encoder(exact_.any_recut() ? merges : BpeMerges());
  WordCounts pieces;
  // Returns the piece of text for a symbol. At the end of a word (`final`) the piece is the symbol's text without
  // the mark `</w>`; inside a word the piece is the symbol's text with the separator `@@`.
  const auto name = [&](Symbol symbol, bool final) {
    const std::string_view named = texts_[symbol];
    return final ? std::string(named.substr(0, named.size() - kWordEnd.size()))
                 : std::string(named) + encoder.separator();
  };
  // The places in the WordCounts `pieces` where the counts of pieces are stored: piece_places[0][symbol] for the piece
  // of a symbol inside a word, piece_places[1][symbol] for the piece of a symbol at the end of a word.
  std::array<std::vector<WordCounts::Place>, 2> piece_places;
  for (auto& each : piece_places) each.resize(uses_.size(), WordTable::kNoPlace);
  std::string whole;
  std::vector<std::size_t> ends;
  // Lets BpeEncoder cut a word that occurs `count` times, and adds the word's pieces to `pieces`. For words that
  // BpeEncoder may cut differently from the learner.
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
  for (BlockNumber block = 0; block < text.blocks(); ++block)
    text.each_word(block, [&](std::uint32_t word, std::int64_t count, std::span<const Cell> symbols) {
      if (exact_.is_recut(word)) return cut_again(symbols, count);
      for (std::size_t i = 0; i < symbols.size(); ++i) {
        const bool final = i + 1 == symbols.size();
        WordCounts::Place& place = piece_places[final][symbols[i]];
        if (place == WordTable::kNoPlace) place = pieces.add(name(static_cast<Symbol>(symbols[i]), final), 0);
        pieces.add_to(place, count);
      }
    });
  for (std::size_t i = 0; i < characters_; ++i) {
    const auto symbol = static_cast<Symbol>(i);
    pieces.add(name(symbol, texts_[symbol].size() > kWordEnd.size()), 0);
  }
  return pieces;
}

BpeLearnt BpeLearner::run(const std::function<void(std::int64_t)>& progress) {
  BpeLearnt learnt;
  auto& merges = learnt.merges.pairs;
  for (std::int64_t i = 0; i < limits_.merges && symbols_in_use_ < limits_.symbols; ++i) {
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
    if (i % 100 == 0) {  // after these merges subword-nmt's learn-bpe prunes: it removes rare pairs from its table
      pairs_.prune(i + 1);
      if (progress) progress(i + 1);
    }
  }
  learnt.pieces = with_text([&](const auto& text) { return count_pieces(text, learnt.merges); });
  return learnt;
}

/// Returns an upper bound of the number of cells (array elements) that BpeText needs for the words. Throws UsageError
/// if `limits` has a value out of range, and Error if the number of cells does not fit in 32 bits.
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
  return BpeLearner(most_cells(words, limits), each_word, limits).run(progress);
}

BpeLearnt learn_bpe(WordCounts&& words, const BpeLimits& limits, const std::function<void(std::int64_t)>& progress) {
  const auto each_word = [&](auto&& take) { words.consume(take); };
  return BpeLearner(most_cells(words, limits), each_word, limits).run(progress);
}

}  // namespace heed
