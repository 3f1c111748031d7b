#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "heed/text/bpe/posting_lists.h"
#include "heed/text/strings/string_ids.h"

namespace heed {

/// The table of the pairs of symbols that the BPE learner stores. (bpe_learner.h explains the learner and its words.)
///
/// For each stored pair the table holds the pair's frequency and a posting list of the blocks in which the pair occurs.
/// A heap finds the most frequent pair. Decreases do not touch the heap: a heap entry whose frequency is out of date is
/// corrected when the entry comes to the top.
///
/// Example. The words are low (5 times), lower (2), newest (6) and widest (3); block 0 holds the first two words, block
/// 1 the last two. Some of the stored pairs, before and after the first merge, which merges `s t</w>`:
///
///     pair          before              after
///     s t</w>       9, blocks {1}       0, blocks {}     use_up() has returned the blocks to the caller
///     e s           9, blocks {1}       0, blocks {1}    decrease() by 9; the blocks stay, although now out of date
///     e st</w>      not stored          9, blocks {1}    create(), which also pushes the pair onto the heap
///     w e           8, blocks {0, 1}    8, blocks {0, 1}
///
/// The heap's top is now still (e s, 9). most_frequent() sees that the frequency of `e s` is 0, drops that entry, and
/// returns (e st</w>, 9).
///
/// Why a pair can have two frequencies. subword-nmt's learn-bpe keeps two tables of frequencies, to be fast:
/// - `current`: the pairs that are still frequent. learn-bpe takes its next merge from this table.
/// - `full`: also the pairs that are too rare for `current`.
/// From time to time learn-bpe prunes: pairs below a threshold are removed from `current`, and their frequencies are
/// written to `full`. When every pair left in `current` is below the threshold, learn-bpe restores: `full` is copied to
/// `current`, and a new threshold is set. As long as each merge makes a new symbol, a pair can only become rarer. Then
/// pruning cannot change which pair is merged next, and this table needs one frequency for each pair: the frequency in
/// the text. A few pairs can make learn-bpe's tables differ from the text (see bpe_exact_merge.h). Those pairs are
/// `followed`: for them this table holds what learn-bpe has in `current` and in `full`, errors included. When a pair
/// becomes followed in the middle of a training, follow() computes the two values from the pair's frequency in the text
/// and the decreases since the last pruning.
class BpePairs {
 public:
  using Symbol = std::int32_t;
  using Id = std::int32_t;
  // A pair of symbols in one number: the first symbol's id is in the upper 32 bits, the second symbol's id in the
  // lower.
  using Key = std::uint64_t;
  using List = PostingLists::List;

  struct Pair {
    // How often the pair occurs in the text. For a pair marked as `followed`: the value that subword-nmt's learn-bpe
    // has for the pair in learn-bpe's table of frequent pairs, called `current`. That value can be negative.
    std::int64_t current = 0;
    // For a pair marked as `followed`: the value that subword-nmt's learn-bpe has for the pair in learn-bpe's second
    // table, called `full`, which holds rare pairs too.
    std::int64_t full = 0;
    // The numbers of the blocks of words in which the pair occurs, and perhaps of blocks in which the pair no longer
    // occurs.
    List blocks = {};
    // Whether subword-nmt's learn-bpe has an entry for the pair in its table `current` and in its table `full`, and
    // whether this Pair holds learn-bpe's two values (`followed`) instead of the frequency in the text.
    bool is_current = true, is_full = false, followed = false;
  };
  /// An entry of the heap that finds the most frequent pair: the id of a pair of symbols, and the frequency that the
  /// pair had when the entry was pushed.
  struct Candidate {
    std::int64_t frequency;
    Id pair;
  };
  /// How often a pair of symbols occurs in the text, and the list of the blocks of words in which the pair occurs.
  struct Occurrences {
    std::int64_t count = 0;
    List blocks = {};
  };

  static Key key_of(Symbol first, Symbol second) {
    return static_cast<Key>(static_cast<std::uint32_t>(first)) << 32 | static_cast<std::uint32_t>(second);
  }
  static Symbol first_of(Key key) { return static_cast<Symbol>(key >> 32); }
  static Symbol second_of(Key key) { return static_cast<Symbol>(key & 0xFFFFFFFFu); }

  /// Makes an empty table of pairs. `texts` gives the text of each symbol; the table keeps a reference to `texts`.
  explicit BpePairs(const StringIds& texts) : texts_(texts) {}

  /// Returns the id of a pair of symbols, and stores the pair with frequency 0 if the table does not hold the pair. The
  /// id is valid until keep() gives the pairs new ids.
  Id add(Key key) {
    const Id id = index_.add(first_of(key), second_of(key));
    if (static_cast<std::size_t>(id) == pairs_.size()) pairs_.emplace_back();
    return id;
  }
  /// Returns the id of the pair of the symbols `first` and `second`, or kNoId when the table does not hold the pair.
  Id find(Symbol first, Symbol second) const { return index_.find(first, second); }
  Pair& operator[](Id id) { return pairs_[static_cast<std::size_t>(id)]; }
  Symbol first(Id id) const { return index_.first(id); }
  Symbol second(Id id) const { return index_.second(id); }
  std::span<Pair> all() { return pairs_; }
  /// Returns the pool that stores the posting lists `Pair::blocks` of all pairs.
  PostingLists& posting_lists() { return posting_lists_; }

  /// Pushes the pair `id` with the pair's present frequency onto the heap of the most frequent pairs. Must be called
  /// whenever the frequency of a pair has grown.
  void push(Id id);
  /// Returns the pair with the highest frequency `Pair::current`, and of equally frequent pairs the greatest by code
  /// points. Returns {0, kNoId} when no pair has a frequency above 0.
  Candidate most_frequent();
  /// Returns the highest frequency `Pair::current` of all stored pairs, which are searched one by one. Returns 0 if no
  /// pair is stored.
  std::int64_t highest_frequency() const;

  /// Subtracts `by` from the frequency of the pair of the symbols `first` and `second`, because a merge has made the
  /// pair rarer. Appends the decrease to decreases_ even if the table does not hold the pair.
  void decrease(Symbol first, Symbol second, std::int64_t by) {
    decreases_.emplace_back(key_of(first, second), by);
    const Id id = find(first, second);
    if (id == kNoId) return;
    Pair& state = (*this)[id];
    state.current -= by;
    state.is_current = true;
  }
  /// Sets the frequency of the pair `id`, which the caller is merging, to 0. Returns the list of the blocks in which
  /// the pair occurs; the caller must clear this list after the merge.
  List use_up(Id id);
  /// Records that the merge with the number `merge` (the first merge has the number 1) has made the new symbol
  /// `symbol`.
  void note_birth(Symbol symbol, std::int64_t merge);
  /// Stores a new pair, which contains the symbol of the last merge, with the pair's occurrences `found` in the text,
  /// and pushes the pair onto the heap of the most frequent pairs.
  void create(Key key, const Occurrences& found, bool followed);

  /// Marks a pair as followed: from now on `Pair::current` and `Pair::full` are the values that subword-nmt's learn-bpe
  /// has for the pair in its two tables of frequencies. If the pair was not stored, `unstored` points to the pair's
  /// occurrences in the text, and the list of blocks is moved from `unstored` to the pair; otherwise `unstored` is
  /// null.
  void follow(Key key, Occurrences* unstored);

  /// Removes every pair with a frequency below `least` from the table, except followed pairs. Changes the ids of pairs.
  void keep(std::int64_t least);
  /// Removes every pair except followed pairs from the table, and empties the list of blocks of each pair. The learner
  /// then counts the pairs of the text again.
  void keep_followed();
  /// Adds one occurrence of a pair in a word that occurs `count` times in the text and is stored in the block number
  /// `block`.
  void count(Key key, std::int64_t count, std::uint32_t block) {
    Pair& state = (*this)[add(key)];
    if (!state.followed) state.current += count;
    posting_lists_.append(state.blocks, block);
  }

  /// Returns the frequency below which subword-nmt's learn-bpe removes pairs from its table of frequent pairs, if the
  /// most frequent pair occurs `frequency` times after `merges` merges: frequency / 10 before the first removal, later
  /// frequency * merges / (merges + 10000).
  double threshold_after(std::int64_t frequency, std::int64_t merges) const;
  double threshold() const { return threshold_; }
  /// Prepares the table for the first merge, after the pairs have been counted: copies `Pair::current` to `Pair::full`,
  /// computes the threshold of frequency below which learn-bpe removes pairs, and fills the heap.
  void start();
  /// Prunes the followed pairs as subword-nmt's learn-bpe does: moves the frequency of each followed pair that is rarer
  /// than the threshold from `Pair::current` to `Pair::full`. `merges` is the number of merges done so far.
  void prune(std::int64_t merges);
  /// Copies `Pair::full` to `Pair::current` for the followed pairs. This is the first half of what subword-nmt's
  /// learn-bpe does when all pairs in its table of frequent pairs have become rare. The caller then stores all pairs
  /// that later merges need, and calls start_again() for the second half.
  void restore(std::int64_t merges);
  /// Removes the stored pairs rarer than `least`, computes a new threshold of frequency, calls prune() and fills the
  /// heap. This is the second half, after restore(), of what subword-nmt's learn-bpe does when all pairs in its table
  /// of frequent pairs have become rare.
  void start_again(std::int64_t least, std::int64_t merges);

 private:
  /// Returns whether the pair `a` must be merged after the pair `b`: `a` is less frequent than `b`, or `a` is equally
  /// frequent and smaller by code points.
  bool less(const Candidate& a, const Candidate& b) const;
  /// Replaces the content of the heap by all pairs whose frequency `Pair::current` is above 0.
  void fill_heap();
  /// Returns the number of the merge that made a symbol (1 for the first merge), or 0 for a single character.
  std::int64_t birth(Symbol symbol) const {
    const auto i = static_cast<std::size_t>(symbol);
    return i < births_.size() ? births_[i] : 0;
  }

  const StringIds& texts_;      // the text of each symbol
  PairIds index_;               // the interner that gives each pair of symbols the pair's id
  std::vector<Pair> pairs_;     // all stored pairs; the id of a pair is the pair's index in this array
  std::vector<Id> followed_;    // the ids of the pairs whose count is kept up to date (Pair::followed)
  PostingLists posting_lists_;  // the pool in which `Pair::blocks` of all pairs are stored
  // A binary heap with the most frequent pair at the top, in the order of less(). Some entries hold frequencies that
  // are out of date.
  std::vector<Candidate> heap_;
  // For each symbol the number of the merge that made the symbol (1 for the first merge); 0 for a single character.
  std::vector<std::int64_t> births_;
  // A threshold of frequency: subword-nmt's learn-bpe removes pairs that occur less often from its table of frequent
  // pairs.
  double threshold_ = 0;
  // The number of merges that were done before prune() was last called; -1 before the first call.
  std::int64_t pruned_at_ = -1;
  // The pairs whose frequency decreased since prune() was last called, each with the size of the decrease.
  std::vector<std::pair<Key, std::int64_t>> decreases_;
};

}  // namespace heed
