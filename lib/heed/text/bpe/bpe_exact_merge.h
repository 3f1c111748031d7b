#pragma once

#include <cstdint>
#include <unordered_map>
#include <utility>
#include <vector>

#include "heed/text/bpe/bpe_pairs.h"
#include "heed/text/bpe/bpe_text.h"

namespace heed {

/// A merge at work.
struct BpeMerge {
  BpePairs::Symbol first = 0, second = 0, merged = 0;
  bool again = false;     // the merged symbol was there before
  std::int64_t made = 0;  // places so far

  BpePairs::Key key() const { return BpePairs::key_of(first, second); }
};

/// Merges as the reference, learn-bpe, does them. A merge that makes a symbol again, of other parts, lets pairs grow:
/// one that was pruned counts too low from then on, one that stood beside the symbol counts too high, and the
/// reference's index from pairs to words errs likewise. Such pairs are followed, and how far the index is from the text
/// is kept.
class BpeExactMerger {
 public:
  using Key = BpePairs::Key;
  using Symbol = BpePairs::Symbol;
  using Word = std::uint32_t;
  using Corrections = std::unordered_map<Word, std::int32_t>;  // places in the index, less those in the text

  explicit BpeExactMerger(BpePairs& pairs) : pairs_(pairs) {}

  /// The index has `by` places of a pair more in a word than it had, or the text fewer.
  void correct(Key key, Word word, std::int64_t by) {
    if (by != 0) corrections_[key][word] += static_cast<std::int32_t>(by);
  }
  /// Whether a merge must be done here.
  bool is_needed(const BpeMerge& merge) const { return merge.again || corrections_.contains(merge.key()); }

  /// Merges in the words that the reference's index has for the pair `id`, whether they hold it or not, and counts what
  /// that changes. `blocks`: those of the pair. `all_stored`: no pair of the text is missing in the pairs.
  template <class Cell>
  void merge(BpeText<Cell>& text, BpeMerge& merge, BpePairs::Id id, const BpePairs::List& blocks, bool all_stored);

  /// Whether the merges cut a word in another way when they are applied by rank.
  bool is_recut(Word word) const { return !recut_.empty() && recut_[word]; }
  bool any_recut() const { return !recut_.empty(); }

 private:
  /// What a merge does to a pair.
  struct Change {
    std::int64_t by = 0;
    BpePairs::List blocks = {};  // those in which it came to be; none where it becomes rarer only
  };

  template <class Cell>
  void find_unstored(const BpeText<Cell>& text, Symbol merged);
  void merge_word(BpeMerge& merge, Word word, std::int64_t count, std::uint32_t block);
  void apply();

  BpePairs& pairs_;
  std::unordered_map<Key, Corrections> corrections_;
  std::vector<bool> recut_;

  // Of the merge at work:
  std::vector<Symbol> old_, new_;  // a word before and after
  std::unordered_map<Key, Change> changes_;
  std::unordered_map<Key, BpePairs::Occurrences> unstored_;  // pairs with the merged symbol
};

}  // namespace heed
