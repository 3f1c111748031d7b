#pragma once

#include <cstdint>
#include <vector>

#include "heed/data/parallel_corpus.h"

namespace heed {

/// Tokens a sentence, `</s>` included.
struct LengthStatistics {
  double mean = 0;
  std::int32_t median = 0, percentile99 = 0, longest = 0;
};

/// What `train --check` looks at in a corpus.
struct CorpusStatistics {
  LengthStatistics source, target;
  std::int64_t duplicates = 0;  ///< pairs that were there before, with the same ids on both sides
  std::int64_t first_duplicate_line = 0;
  std::int64_t copies = 0;  ///< source and target are the same ids (only where one vocabulary serves both)
  std::int64_t first_copy_line = 0;
  std::int64_t ratio_outliers = 0;  ///< one side has more than 3 times the other's tokens, and 10 more
  std::int64_t first_ratio_outlier_line = 0;
};

CorpusStatistics corpus_statistics(const ParallelCorpus& corpus, bool one_vocabulary);

/// Pairs of `held_out` that are in `training` too.
std::int64_t count_overlap(const ParallelCorpus& training, const ParallelCorpus& held_out);

}  // namespace heed
