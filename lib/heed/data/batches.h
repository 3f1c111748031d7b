#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "heed/data/parallel_corpus.h"
#include "heed/model/batch.h"

namespace heed {

/// How large a batch may be. A pair that alone is larger than the budget is a batch of its own.
struct BatchLimits {
  std::int64_t target_tokens = 4096;  ///< `</s>` included
  std::int64_t pairs = INT64_MAX;
};

/// The batches of an epoch: every pair in exactly one. Pairs of similar length come together (buckets 1-8, 9-16,
/// 17-32, ... tokens of the longer side), in random order within a bucket, and the batches are shuffled. A pure
/// function of corpus, limits, seed and epoch, so that a resumed run needs no more than its place in the list.
class EpochBatches {
 public:
  EpochBatches(const ParallelCorpus& corpus, const BatchLimits& limits, std::uint64_t seed);

  /// Makes the list of epoch `epoch` (from 0).
  void prepare(std::int64_t epoch);
  std::int64_t size() const { return static_cast<std::int64_t>(batches_.size()); }
  /// The pairs of a batch.
  std::span<const std::int32_t> operator[](std::int64_t batch) const {
    const Range& range = batches_[static_cast<std::size_t>(batch)];
    return {order_.data() + range.begin, static_cast<std::size_t>(range.end - range.begin)};
  }

 private:
  struct Range {
    std::int64_t begin, end;
  };

  const ParallelCorpus& corpus_;
  BatchLimits limits_;
  std::uint64_t seed_;
  std::vector<std::uint8_t> bucket_;  // of each pair
  std::vector<std::int32_t> shuffled_, order_;
  std::vector<Range> batches_;
};

/// The pairs of a corpus in their order, cut into batches: for validation.
std::vector<std::vector<std::int32_t>> batches_in_order(const ParallelCorpus& corpus, const BatchLimits& limits);

/// A part of an update's batches that one thread computes at once.
struct Shard {
  std::span<const std::int32_t> pairs;
  std::int64_t target_tokens = 0;
};

/// Cuts a batch into shards of about equally many target tokens and appends them: 1, 2, 4, 8, ... of them, so that
/// each has at most about 1024 tokens, and two where there are 256. Small enough to share out and to stay in cache,
/// large enough for fast matrix products. The number of threads plays no part, because dropout depends on the shard.
void cut_into_shards(const ParallelCorpus& corpus, std::span<const std::int32_t> pairs, std::vector<Shard>& shards);

/// The packed batch of some pairs, with `<s>` and `</s>` in their places.
void fill_batch(const ParallelCorpus& corpus, std::span<const std::int32_t> pairs, Batch& batch);

}  // namespace heed
