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
  using Key = std::uint64_t;  // two symbols in one number: the first symbol in the upper 32 bits, the second below
  using List = PostingLists::List;

  struct Pair {
    // The frequency in the text. For a followed pair: the value in learn-bpe's table `current`, which can be negative.
    std::int64_t current = 0;
    std::int64_t full = 0;  // for a followed pair: the value in learn-bpe's table `full`
    List blocks = {};       // every block in which the pair occurs, and perhaps blocks in which it no longer occurs
    // Whether learn-bpe's tables `current` and `full` have an entry for the pair, and whether the pair is followed.
    bool is_current = true, is_full = false, followed = false;
  };
  /// An entry of the heap: a pair, and the frequency that the pair had when the entry was pushed.
  struct Candidate {
    std::int64_t frequency;
    Id pair;
  };
  /// How often a pair occurs in the text, and the blocks in which the pair occurs.
  struct Occurrences {
    std::int64_t count = 0;
    List blocks = {};
  };

  static Key key_of(Symbol first, Symbol second) {
    return static_cast<Key>(static_cast<std::uint32_t>(first)) << 32 | static_cast<std::uint32_t>(second);
  }
  static Symbol first_of(Key key) { return static_cast<Symbol>(key >> 32); }
  static Symbol second_of(Key key) { return static_cast<Symbol>(key & 0xFFFFFFFFu); }

  /// Makes an empty table. `texts` gives the text of each symbol; the table keeps a reference to `texts`.
  explicit BpePairs(const StringIds& texts) : texts_(texts) {}

  /// Returns the id of a pair, and stores the pair with frequency 0 if it is not stored yet. keep() gives
  /// the pairs new ids.
  Id add(Key key) {
    const Id id = index_.add(first_of(key), second_of(key));
    if (static_cast<std::size_t>(id) == pairs_.size()) pairs_.emplace_back();
    return id;
  }
  /// Returns the id of a pair, or kNoId when the pair is not stored.
  Id find(Symbol first, Symbol second) const { return index_.find(first, second); }
  Pair& operator[](Id id) { return pairs_[static_cast<std::size_t>(id)]; }
  Symbol first(Id id) const { return index_.first(id); }
  Symbol second(Id id) const { return index_.second(id); }
  std::span<Pair> all() { return pairs_; }
  /// Returns the pool of posting lists. `Pair::blocks` of every pair is a list in this pool.
  PostingLists& posting_lists() { return posting_lists_; }

  /// Pushes a pair and its present frequency onto the heap. Must be called whenever a frequency has grown.
  void push(Id id);
  /// Returns the most frequent pair of `current`, and of equally frequent pairs the greatest by code points. Returns
  /// {0, kNoId} when no pair has a frequency above 0.
  Candidate most_frequent();
  /// Returns the highest frequency in `current`, by a search of all stored pairs; 0 without pairs.
  std::int64_t highest_frequency() const;

  /// Subtracts `by` from the frequency of a pair, because a merge has made the pair rarer. Notes the decrease also for
  /// a pair that is not stored.
  void decrease(Symbol first, Symbol second, std::int64_t by) {
    decreases_.emplace_back(key_of(first, second), by);
    const Id id = find(first, second);
    if (id == kNoId) return;
    Pair& state = (*this)[id];
    state.current -= by;
    state.is_current = true;
  }
  /// Sets the frequency of the pair that is being merged to 0. Returns the pair's list of blocks, which the caller
  /// clears.
  List use_up(Id id);
  /// Notes that merge number `merge` (the first merge is 1) has made the new symbol `symbol`.
  void note_birth(Symbol symbol, std::int64_t merge);
  /// Stores a pair that contains a new symbol, with the pair's occurrences in the text, and pushes the pair onto the
  /// heap.
  void create(Key key, const Occurrences& found, bool followed);

  /// Makes a pair followed: from now on `current` and `full` are the values in learn-bpe's two tables. `unstored` holds
  /// the pair's occurrences if the pair was not stored, or is null; its list of blocks is moved to the pair.
  void follow(Key key, Occurrences* unstored);

  /// Removes every pair with a frequency below `least` from the table, except followed pairs. Changes the ids of pairs.
  void keep(std::int64_t least);
  /// Removes every pair except followed pairs, and clears all lists of blocks. The learner then counts the text again.
  void keep_followed();
  /// Adds one occurrence of a pair in a word that occurs `count` times and stands in block number `block`.
  void count(Key key, std::int64_t count, std::uint32_t block) {
    Pair& state = (*this)[add(key)];
    if (!state.followed) state.current += count;
    posting_lists_.append(state.blocks, block);
  }

  /// Returns the threshold that learn-bpe computes after `merges` merges when the most frequent pair occurs `frequency`
  /// times: frequency / 10 before the first pruning, later frequency * merges / (merges + 10000).
  double threshold_after(std::int64_t frequency, std::int64_t merges) const;
  double threshold() const { return threshold_; }
  /// Prepares for the first merge, after the pairs have been counted: sets `full` of each pair to its frequency in the
  /// text, computes the threshold and fills the heap.
  void start();
  /// Does learn-bpe's pruning for the followed pairs: moves those below the threshold from `current` to `full`.
  /// `merges` is the number of merges done so far.
  void prune(std::int64_t merges);
  /// Does the first half of learn-bpe's restoring: copies `full` to `current` for the followed pairs. The caller then
  /// stores all pairs that it needs, and calls start_again().
  void restore(std::int64_t merges);
  /// Does the second half of learn-bpe's restoring: removes stored pairs rarer than `least`, computes a new threshold,
  /// prunes and fills the heap.
  void start_again(std::int64_t least, std::int64_t merges);

 private:
  /// Returns whether `a` is to be merged after `b`: `a` is less frequent, or as frequent and smaller by code points.
  bool less(const Candidate& a, const Candidate& b) const;
  /// Fills the heap anew with all pairs of `current` whose frequency is above 0.
  void fill_heap();
  /// Returns the number of the merge that made a symbol, or 0 for a character.
  std::int64_t birth(Symbol symbol) const {
    const auto i = static_cast<std::size_t>(symbol);
    return i < births_.size() ? births_[i] : 0;
  }

  const StringIds& texts_;            // the text of each symbol
  PairIds index_;                     // from the two symbols of a pair to the pair's id
  std::vector<Pair> pairs_;           // the id of a pair is its index in this array
  std::vector<Id> followed_;          // the ids of all followed pairs
  PostingLists posting_lists_;        // the pool in which `Pair::blocks` of all pairs are stored
  std::vector<Candidate> heap_;       // a heap by less(); some entries hold frequencies that are out of date
  std::vector<std::int64_t> births_;  // for each symbol the number of the merge that made it, 0 for a character
  double threshold_ = 0;              // learn-bpe's threshold of pruning, a frequency
  std::int64_t pruned_at_ = -1;       // how many merges were done before the last pruning; -1 before the first pruning
  std::vector<std::pair<Key, std::int64_t>> decreases_;  // all decreases of frequencies since the last pruning
};

}  // namespace heed
