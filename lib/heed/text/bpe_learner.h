#pragma once

#include <cstdint>
#include <functional>
#include <limits>
#include <string>
#include <string_view>
#include <vector>

#include "heed/text/bpe.h"
#include "heed/text/numbering.h"

namespace heed {

/// How often each word occurs, in the order of first occurrence.
class WordCounts {
 public:
  void add(std::string_view word, std::int64_t count = 1);

  std::size_t size() const { return counts_.size(); }
  /// The view lives until the next add().
  std::string_view word(std::size_t index) const { return words_[static_cast<std::int32_t>(index)]; }
  std::int64_t count(std::size_t index) const { return counts_[index]; }
  std::int64_t total() const { return total_; }

  /// Indices by falling count; equal counts in the order of first occurrence (as get-vocab lists them).
  std::vector<std::size_t> by_count() const;

 private:
  StringNumbering words_;
  std::vector<std::int64_t> counts_;
  std::int64_t total_ = 0;
};

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
  bool exhausted = false;  ///< stopped because no pair was frequent enough
};

/// Learns merge operations from the words of a text, the same ones in the same order as subword-nmt 0.3.8 learn-bpe:
/// of equally frequent pairs the greatest by code points comes first, and its pruning of rare pairs is followed where
/// it decides between them. `progress` is told the number of merges so far.
BpeLearnt learn_bpe(const WordCounts& words, const BpeLimits& limits,
                    const std::function<void(std::int64_t)>& progress = {});

}  // namespace heed
