#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "heed/text/bpe/posting_lists.h"
#include "heed/text/strings/string_ids.h"

namespace heed {

/// The pairs of symbols that a BPE learner stores: their frequencies, the blocks of words in which they occur, and a
/// heap whose entries are brought up to date when they come to the top.
///
/// The reference, learn-bpe, keeps two tables of frequencies: `current`, without the pairs pruned below a threshold,
/// and `full`, which takes over when `current` runs low. As long as every merge makes a symbol that was not there
/// before, a pair becomes rarer only, and what was pruned cannot decide anything: such pairs have the frequency that
/// the text gives them. Where it can, pairs are `followed`: both frequencies are kept as the reference has them. What
/// they were before follows from the frequency and the decreases since the last pruning.
class BpePairs {
 public:
  using Symbol = std::int32_t;
  using Id = std::int32_t;
  using Key = std::uint64_t;  // of a pair: its first symbol above its second
  using List = PostingLists::List;

  struct Pair {
    std::int64_t current = 0;  // the frequency, but for followed pairs
    std::int64_t full = 0;
    List blocks = {};
    bool is_current = true, is_full = false, followed = false;
  };
  struct Candidate {
    std::int64_t frequency;
    Id pair;
  };
  /// How often a pair is in the text, and in which blocks.
  struct Occurrences {
    std::int64_t count = 0;
    List blocks = {};
  };

  static Key key_of(Symbol first, Symbol second) {
    return static_cast<Key>(static_cast<std::uint32_t>(first)) << 32 | static_cast<std::uint32_t>(second);
  }
  static Symbol first_of(Key key) { return static_cast<Symbol>(key >> 32); }
  static Symbol second_of(Key key) { return static_cast<Symbol>(key & 0xFFFFFFFFu); }

  /// `texts`: of the symbols; kept by reference.
  explicit BpePairs(const StringIds& texts) : texts_(texts) {}

  /// The number of a pair, which keep() may change. A new one has the frequency 0.
  Id add(Key key) {
    const Id id = index_.add(first_of(key), second_of(key));
    if (static_cast<std::size_t>(id) == pairs_.size()) pairs_.emplace_back();
    return id;
  }
  /// kNoId where it is not stored.
  Id find(Symbol first, Symbol second) const { return index_.find(first, second); }
  Pair& operator[](Id id) { return pairs_[static_cast<std::size_t>(id)]; }
  Symbol first(Id id) const { return index_.first(id); }
  Symbol second(Id id) const { return index_.second(id); }
  std::span<Pair> all() { return pairs_; }
  /// Returns the posting lists that hold every pair's blocks.
  PostingLists& posting_lists() { return posting_lists_; }

  /// Puts a pair whose frequency has grown onto the heap.
  void push(Id id);
  /// The most frequent current pair, of equally frequent ones the greatest; frequency 0 when there is none.
  Candidate most_frequent();
  std::int64_t highest_frequency() const;

  /// A merge has made a pair rarer.
  void decrease(Symbol first, Symbol second, std::int64_t by) {
    decreases_.emplace_back(key_of(first, second), by);
    const Id id = find(first, second);
    if (id == kNoId) return;
    Pair& state = (*this)[id];
    state.current -= by;
    state.is_current = true;
  }
  /// A merge uses a pair up. Returns its blocks, for the caller to clear.
  List use_up(Id id);
  /// A symbol that was not there before the merge of this number, from 1.
  void note_birth(Symbol symbol, std::int64_t merge);
  /// Stores a pair with such a symbol.
  void create(Key key, const Occurrences& found, bool followed);

  /// Keeps a pair as the reference has it from here on. `unstored`: its occurrences, if it was not stored and has any;
  /// the pair takes the blocks over.
  void follow(Key key, Occurrences* unstored);

  /// Forgets the pairs below a frequency, but for followed ones.
  void keep(std::int64_t least);
  /// Forgets all pairs, but for followed ones, and all blocks, before the text is counted again.
  void keep_followed();
  /// Counts an occurrence of a pair, `count` times, in a block.
  void count(Key key, std::int64_t count, std::uint32_t block) {
    Pair& state = (*this)[add(key)];
    if (!state.followed) state.current += count;
    posting_lists_.append(state.blocks, block);
  }

  /// The threshold below which the reference prunes when the most frequent pair occurs so often.
  double threshold_after(std::int64_t frequency, std::int64_t merges) const;
  double threshold() const { return threshold_; }
  /// Before the first merge, when the pairs have been counted: both frequencies are those of the text.
  void start();
  /// Takes the rare ones of the followed pairs out of `current`.
  void prune(std::int64_t merges);
  /// `current` has run low: gives the followed pairs their full frequency again.
  void restore(std::int64_t merges);
  /// After that, when all pairs from the frequency `least` on are stored: prunes below a new threshold.
  void start_again(std::int64_t least, std::int64_t merges);

 private:
  bool less(const Candidate& a, const Candidate& b) const;
  void fill_heap();
  std::int64_t birth(Symbol symbol) const {
    const auto i = static_cast<std::size_t>(symbol);
    return i < births_.size() ? births_[i] : 0;
  }

  const StringIds& texts_;
  PairIds index_;
  std::vector<Pair> pairs_;
  std::vector<Id> followed_;
  PostingLists posting_lists_;
  std::vector<Candidate> heap_;
  std::vector<std::int64_t> births_;  // per symbol; 0 for characters
  double threshold_ = 0;
  std::int64_t pruned_at_ = -1;                          // merges before the last pruning
  std::vector<std::pair<Key, std::int64_t>> decreases_;  // since then
};

}  // namespace heed
