#pragma once

#include <cstdint>
#include <functional>
#include <limits>

#include "heed/text/bpe/bpe.h"
#include "heed/text/strings/word_counts.h"

namespace heed {

// How byte-pair encoding (BPE) is learnt, with an example.
//
// The input is the different words of a text with their counts. Each word starts as a sequence of symbols, one for each
// character; the last symbol of a word has the mark `</w>`. The learner repeats one step: it finds the most frequent
// pair of neighbouring symbols, and merges the pair into one symbol wherever the pair occurs.
//
//     words and counts     symbols at first      after merge 1: s t</w>     after merge 2: e st</w>
//     low     5            l o w</w>             l o w</w>                  l o w</w>
//     lower   2            l o w e r</w>         l o w e r</w>              l o w e r</w>
//     newest  6            n e w e s t</w>       n e w e st</w>             n e w est</w>
//     widest  3            w i d e s t</w>       w i d e st</w>             w i d est</w>
//
// Before merge 1 the pairs `s t</w>` and `e s` are the most frequent (6 + 3 = 9 times); `s t</w>` is merged, because
// the greater text wins between equally frequent pairs. The merge changes only the frequencies of neighbouring pairs:
// `e s` falls from 9 to 0, and the new pair `e st</w>` occurs 9 times. The two merges are the first two lines of the
// result.
//
// A large text has millions of different words. Four parts make each step fast:
// - BpeText (bpe_text.h): the words and their symbols in one array;
// - BpePairs (bpe_pairs.h): the table of pairs with frequencies, and a heap that gives the most frequent pair;
// - PostingLists (posting_lists.h): for each pair the list of the blocks that a merge must search;
// - BpeExactMerger (bpe_exact_merge.h): the rare merges for which subword-nmt's learn-bpe counts wrongly. The learner
//   has to give the same merges as learn-bpe, and therefore has to make the same errors.
//
// Glossary of these files:
//   symbol      a character or a merged sequence of characters. A symbol is stored as a number, the id of its text.
//   pair        two symbols; an occurrence of a pair is a position in a word where the two stand side by side.
//   frequency   the number of occurrences of a pair in the text; an occurrence in a word counts as often as the word.
//   cell        one element of BpeText's array: the count of a word, one symbol, or the mark of a word's end.
//   block       some neighbouring words in that array, together about 96 or 1,024 cells. Blocks have the numbers
//               0, 1, 2, ... A posting list holds block numbers, and a merge searches whole blocks.
//   place       for WordCounts, where the record of a word or a piece is stored (word_counts.h).
//   stored      a pair that has an entry in BpePairs. Rare pairs are not stored; when rarer pairs are needed, the
//               learner counts the whole text again.
//   current     the table of pairs from which learn-bpe takes the most frequent pair.
//   full        learn-bpe's second table of pairs, which also holds the pairs that are too rare for `current`.
//   prune       to remove pairs below a threshold from `current` and write their frequencies to `full`.
//   followed    a stored pair for which BpePairs holds learn-bpe's two frequencies (`current` and `full`) instead of
//               the frequency in the text, because learn-bpe's frequencies may differ from the text.

/// The limits of learn_bpe(), which stops learning merges as soon as one limit is reached.
struct BpeLimits {
  std::int64_t merges = std::numeric_limits<std::int64_t>::max();  ///< highest number of merges to learn
  /// Learning stops when the text consists of this number of different symbols. Each single character of the text
  /// counts as a symbol, even if merges have joined every occurrence of the character with other characters.
  std::int64_t symbols = std::numeric_limits<std::int64_t>::max();
  std::int64_t min_frequency = 2;  ///< a pair of symbols that occurs less often than this is not merged; at least 1
};

/// The result of learn_bpe(): the learnt merges, and the pieces into which the merges cut the text.
struct BpeLearnt {
  BpeMerges merges;
  /// The number of occurrences of each piece in the words after BpeEncoder has cut the words with `merges`, in the
  /// order of first occurrence. After these pieces come, with count 0, the single characters that occur in no cut word.
  /// A piece inside a word ends with the usual separator, `@@`.
  WordCounts pieces;
  /// Whether learning stopped because no pair of symbols occurred at least BpeLimits::min_frequency times any more.
  bool exhausted = false;
};

/// Learns merge operations from the words of a text: the same merges in the same order as subword-nmt 0.3.8's
/// learn-bpe. Of equally frequent pairs the greatest by code points is merged first. learn-bpe removes rare pairs from
/// its table of frequencies after the merges 1, 101, 201 and so on; where this changes the order of later merges,
/// learn_bpe() gives the changed order too. Calls `progress` after the same merges with the number of merges done so
/// far. The words with their counts may make up a text of at most 10^15 bytes. Throws UsageError for limits out of
/// range, and Error for too many words.
BpeLearnt learn_bpe(const WordCounts& words, const BpeLimits& limits,
                    const std::function<void(std::int64_t)>& progress = {});
/// Learns the same merge operations as the overload above, and frees the memory of `words` while it reads the words.
/// `words` is empty afterwards.
BpeLearnt learn_bpe(WordCounts&& words, const BpeLimits& limits,
                    const std::function<void(std::int64_t)>& progress = {});

}  // namespace heed
