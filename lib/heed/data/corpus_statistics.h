#pragma once

#include <cstdint>
#include <vector>

#include "heed/data/parallel_corpus.h"

namespace heed {

/// The distribution of the lengths of a corpus's sentences, in tokens, `</s>` included.
struct LengthStatistics {
  double mean = 0;
  std::int32_t median = 0, percentile99 = 0, longest = 0;
};

/// The properties of a training corpus that `train --check` reports. For each kind of pair that is counted (duplicates,
/// copies, ratio outliers), a member holds the line number, from 1, of the first pair of this kind; 0 if the corpus has
/// no pair of this kind.
struct CorpusStatistics {
  LengthStatistics source, target;
  std::int64_t duplicates = 0;  ///< number of pairs that equal an earlier pair of the corpus, id by id, on both sides
  std::int64_t first_duplicate_line = 0;
  /// The number of pairs whose source and target are the same token ids; counted only if source and target have one
  /// vocabulary.
  std::int64_t copies = 0;
  std::int64_t first_copy_line = 0;
  /// The number of pairs with suspicious lengths: the longer side has more than 3 times as many tokens as the shorter
  /// side, and at least 11 tokens more.
  std::int64_t ratio_outliers = 0;
  std::int64_t first_ratio_outlier_line = 0;
};

/// Computes the statistics of a corpus. If `one_vocabulary`, the ids of source and target come from the same
/// vocabulary, so that pairs with equal sides (copies) can be counted.
CorpusStatistics corpus_statistics(const ParallelCorpus& corpus, bool one_vocabulary);

/// Returns the number of sentence pairs of `held_out` that also occur in `training`, with the same ids on both sides.
std::int64_t count_overlap(const ParallelCorpus& training, const ParallelCorpus& held_out);

}  // namespace heed
