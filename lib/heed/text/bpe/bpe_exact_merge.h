#pragma once

#include <cstdint>
#include <unordered_map>
#include <utility>
#include <vector>

#include "heed/text/bpe/bpe_pairs.h"
#include "heed/text/bpe/bpe_text.h"

namespace heed {

// Merges for which subword-nmt's learn-bpe counts wrongly, with an example.
//
// learn-bpe identifies a symbol by its text. A text that itself contains the characters `</w>` can therefore make a
// symbol that exists already. Suppose that the word `a</w>ca` occurs once and now consists of these symbols:
//
//     a</w > c a</w>        (the last symbol is the character a with learn-bpe's mark of the word's end)
//
// and that the next merge is the pair `a</w >`. The merged symbol `a</w>` is equal to the last symbol of the word:
//
//     a</w> c a</w>
//
// After a merge learn-bpe adds to the frequencies of the pairs around every symbol `a</w>` of the word, also around the
// last symbol, which the merge has not made:
//
//     pair           true frequency     learn-bpe's frequency
//     a</w> c        1                  0 + 1 = 1
//     c a</w>        1                  1 + 1 = 2, too high
//
// learn-bpe's index is wrong in the same way: the index says that the word holds the pair `c a</w>` twice. A merge that
// makes an existing symbol has two more effects: existing pairs become more frequent, and if learn-bpe had pruned such
// a pair, the frequency restarts from 0 and is too low. heed has to learn exactly learn-bpe's merges. BpeExactMerger
// therefore repeats the errors: the affected pairs become `followed` in BpePairs, which then holds learn-bpe's
// frequencies, and BpeExactMerger itself records how far learn-bpe's index differs from the text.
//
// learn-bpe's index has a second error, without such a text. A merge of two equal symbols, such as `a a`, in a word
// with `a a a` leaves the number -1 for the pair `a a` and this word. The error has an effect only if the pair occurs
// in this word again later, which needs a merge that makes an existing symbol.
//
// Words used in this file (see also the glossary in bpe_learner.h):
//   index        learn-bpe's table that says how many occurrences of each pair each word holds. learn-bpe merges a
//                pair in the words whose number in the index is above 0. heed does not store the index.
//   correction   for a pair and a word: the number in learn-bpe's index minus the number of occurrences in the text.
//                Above: +1 for the pair `c a</w>` and the word `a</w>ca`. A correction of 0 is the normal case.
//   followed     a pair for which BpePairs holds learn-bpe's frequencies instead of the frequency in the text.
//   recut        a word that BpeEncoder may cut differently from the learner. BpeEncoder always applies the merge of
//                the lowest rank first; the learner's merges in this word came in another order.

/// A merge that the BPE learner is applying: the pair of the symbols `first` and `second` becomes the symbol `merged`.
struct BpeMerge {
  BpePairs::Symbol first = 0, second = 0, merged = 0;
  bool again = false;  // whether the symbol `merged` already existed before this merge
  // How many occurrences of the pair have been replaced by the symbol `merged` so far. The number does not depend on
  // how often a word occurs in the text: each different word counts once.
  std::int64_t made = 0;

  BpePairs::Key key() const { return BpePairs::key_of(first, second); }
};

/// Applies merges exactly as subword-nmt's learn-bpe does, and repeats the errors that learn-bpe makes when it counts
/// pairs of symbols. The learner uses a BpeExactMerger only for merges for which is_needed() returns true, because the
/// learner's own code for merges is faster.
class BpeExactMerger {
 public:
  using Key = BpePairs::Key;
  using Symbol = BpePairs::Symbol;
  using Word = std::uint32_t;
  /// The corrections of one pair of symbols. The correction of a word says how many occurrences of the pair
  /// subword-nmt's learn-bpe has recorded for the word, minus the number of occurrences that the word really has.
  using Corrections = std::unordered_map<Word, std::int32_t>;

  explicit BpeExactMerger(BpePairs& pairs) : pairs_(pairs) {}

  /// Adds `by` to the correction of a pair of symbols and a word. The correction is the number of occurrences of the
  /// pair that subword-nmt's learn-bpe has recorded for the word, minus the number of occurrences that the word really
  /// has.
  void correct(Key key, Word word, std::int64_t by) {
    if (by != 0) corrections_[key][word] += static_cast<std::int32_t>(by);
  }
  /// Returns whether a merge must be applied by BpeExactMerger::merge(). This is so if the merged symbol existed
  /// before, or if subword-nmt's learn-bpe has a wrong number of occurrences of the pair for a word.
  bool is_needed(const BpeMerge& merge) const { return merge.again || corrections_.contains(merge.key()); }

  /// Merges the pair `id` in the words in which subword-nmt's learn-bpe merges the pair: in the words that learn-bpe
  /// has recorded for the pair, correctly or not. Updates the frequencies of the other pairs as learn-bpe does, even
  /// for a recorded word that does not hold the pair. `blocks` lists the blocks of words that hold the pair.
  /// `all_stored` says that BpePairs stores every pair of the text.
  template <class Cell>
  void merge(BpeText<Cell>& text, BpeMerge& merge, BpePairs::Id id, const BpePairs::List& blocks, bool all_stored);

  /// Returns whether BpeEncoder may cut a word differently from the learner, because the learner did not apply the
  /// merges in this word in the order of their ranks.
  bool is_recut(Word word) const { return !recut_.empty() && recut_[word]; }
  /// Returns whether merge() has been called. If not, is_recut() returns false for every word: no word's segmentation
  /// has changed yet.
  bool any_recut() const { return !recut_.empty(); }

 private:
  /// The change that a merge makes to the frequency of a pair of symbols other than the merged pair.
  struct Change {
    std::int64_t by = 0;  // the number that is added to the pair's frequency; may be negative
    // The blocks of words in which the merge made new occurrences of the pair. The list is empty if there are none.
    BpePairs::List blocks = {};
  };

  template <class Cell>
  void find_unstored(const BpeText<Cell>& text, Symbol merged);
  void merge_word(BpeMerge& merge, Word word, std::int64_t count, std::uint32_t block);
  void apply();  // adds the changes in changes_ to the frequencies of the pairs in pairs_

  BpePairs& pairs_;
  // subword-nmt's learn-bpe counts some pairs of symbols wrongly. To make the same merges, this table holds for each
  // such pair the differences between learn-bpe's counts and the true counts.
  std::unordered_map<Key, Corrections> corrections_;
  std::vector<bool> recut_;  // for each word the result of is_recut(); empty before the first call of merge()

  // The members below are the state of the merge that is being applied. old_ and new_ are the symbols of the word being
  // changed, before and after the merge.
  std::vector<Symbol> old_, new_;
  std::unordered_map<Key, Change> changes_;  // for each pair other than the merged pair how the frequency changes
  // Pairs that contain the merged symbol, occurred in the text before the merge, and are not stored in BpePairs, with
  // their occurrences.
  std::unordered_map<Key, BpePairs::Occurrences> unstored_;
};

}  // namespace heed
