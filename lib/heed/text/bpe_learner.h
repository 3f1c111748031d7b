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
  void add(std::string_view word, std::int64_t count = 1) { add(word, count, hash_of(word)); }
  /// The same where its hash_of() is at hand. Returns whether the word is new.
  bool add(std::string_view word, std::int64_t count, std::uint64_t hash);

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

/// Counts the words of a long text on several threads: each has a share of the words, by their hashes, so that a word
/// is stored once.
class WordCounter {
 public:
  explicit WordCounter(int threads) : shares_(static_cast<std::size_t>(threads)) {}

  /// Counts the words of the thread's share in the next piece of the text: words between spaces and LFs, the last LF
  /// included. Every thread must be called with the same pieces in the same order.
  void add(std::string_view text, int thread);

  /// Lines with words, so far.
  std::int64_t sentences() const { return shares_.front().sentences; }
  /// All words in the order of first occurrence. Leaves nothing behind.
  WordCounts take();

 private:
  struct alignas(64) Share {
    WordCounts words;
    std::vector<std::int64_t> first;  // where each word occurred first
    std::int64_t position = 0, sentences = 0;
  };
  std::vector<Share> shares_;
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
