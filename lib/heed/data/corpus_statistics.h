#pragma once

#include <cstdint>
#include <vector>

#include "heed/data/parallel_corpus.h"

namespace heed {

/// The distribution of sentence lengths, in tokens, `</s>` included.
struct LengthStatistics {
  double mean = 0;
  std::int32_t median = 0, percentile99 = 0, longest = 0;
};

/// The properties of a training corpus that `train --check` reports. Lines are numbered from 1; 0: no such pair.
struct CorpusStatistics {
  LengthStatistics source, target;
  std::int64_t duplicates = 0;  ///< pairs that equal an earlier pair of the corpus, id by id, on both sides
  std::int64_t first_duplicate_line = 0;
  std::int64_t copies = 0;  ///< pairs whose source and target are the same ids (counted only with one vocabulary)
  std::int64_t first_copy_line = 0;
  /// The number of pairs with suspicious lengths: the longer side has more than 3 times as many tokens as the shorter
  /// side, and more than 10 tokens more.
  std::int64_t ratio_outliers = 0;
  std::int64_t first_ratio_outlier_line = 0;
};

/// Computes the statistics of a corpus. `one_vocabulary`: source and target ids come from the same vocabulary, so that
/// copies can be counted.
CorpusStatistics corpus_statistics(const ParallelCorpus& corpus, bool one_vocabulary);

/// Counts the pairs of `held_out` that also occur in `training`, with the same ids on both sides.
std::int64_t count_overlap(const ParallelCorpus& training, const ParallelCorpus& held_out);

}  // namespace heed
