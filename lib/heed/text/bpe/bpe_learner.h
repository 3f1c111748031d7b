#pragma once

#include <cstdint>
#include <functional>
#include <limits>

#include "heed/text/bpe/bpe.h"
#include "heed/text/strings/word_counts.h"

namespace heed {

/// When learn_bpe() stops.
struct BpeLimits {
  std::int64_t merges = std::numeric_limits<std::int64_t>::max();
  /// Number of different symbols the segmented text holds, the single characters included even where merges have used
  /// them all up.
  std::int64_t symbols = std::numeric_limits<std::int64_t>::max();
  std::int64_t min_frequency = 2;  ///< of a pair; at least 1
};

struct BpeLearnt {
  BpeMerges merges;
  /// How often each piece occurs in the words when BpeEncoder cuts them, in the order of first occurrence; and, behind
  /// those, 0 for each single character that merges have used up. With the usual separator.
  WordCounts pieces;
  bool exhausted = false;  ///< stopped because no pair was frequent enough
};

/// Learns merge operations from the words of a text, the same ones in the same order as subword-nmt 0.3.8 learn-bpe:
/// of equally frequent pairs the greatest by code points comes first, and its pruning of rare pairs is followed where
/// it decides between them. `progress` is told the number of merges so far.
BpeLearnt learn_bpe(const WordCounts& words, const BpeLimits& limits,
                    const std::function<void(std::int64_t)>& progress = {});
/// The same, giving the memory of the words back on the way: they are needed no more.
BpeLearnt learn_bpe(WordCounts&& words, const BpeLimits& limits,
                    const std::function<void(std::int64_t)>& progress = {});

}  // namespace heed
