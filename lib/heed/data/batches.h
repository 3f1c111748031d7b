#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "heed/data/parallel_corpus.h"
#include "heed/model/batch.h"

namespace heed {

/// The largest size of a batch of sentence pairs. A sentence pair that alone exceeds the limits is a batch of its own.
struct BatchLimits {
  std::int64_t target_tokens = 4096;  ///< target tokens of all pairs of the batch together, `</s>` included
  std::int64_t pairs = INT64_MAX;
};

/// The batches of an epoch; each sentence pair is in exactly one batch. A batch contains pairs of similar length: pairs
/// are sorted into buckets of 1-8, 9-16, 17-32, ... tokens on the longer side, in random order within a bucket, and
/// then cut into batches, which are shuffled. The list of batches is a function of corpus, limits, seed and epoch only,
/// so that a resumed training needs nothing but the number of the next batch.
class EpochBatches {
 public:
  EpochBatches(const ParallelCorpus& corpus, const BatchLimits& limits, std::uint64_t seed);

  /// Computes the list of batches of the epoch number `epoch` (counted from 0). Replaces the list of an earlier epoch.
  void prepare(std::int64_t epoch);
  /// Returns the number of batches in the epoch.
  std::int64_t size() const { return static_cast<std::int64_t>(batches_.size()); }
  /// Returns the sentence pairs of one batch, as indices in the corpus. The result is valid until the next call of
  /// prepare().
  std::span<const std::int32_t> operator[](std::int64_t batch) const {
    const Range& range = batches_[static_cast<std::size_t>(batch)];
    return {order_.data() + range.begin, static_cast<std::size_t>(range.end - range.begin)};
  }

 private:
  /// A batch of sentence pairs: the elements begin ... end - 1 of order_.
  struct Range {
    std::int64_t begin, end;
  };

  const ParallelCorpus& corpus_;
  BatchLimits limits_;
  std::uint64_t seed_;
  std::vector<std::uint8_t> bucket_;  // the number of the length bucket of each sentence pair
  // Two lists of all sentence pairs, as indices in the corpus: shuffled_ is in random order; order_ is sorted by length
  // bucket, with random order within each bucket.
  std::vector<std::int32_t> shuffled_, order_;
  std::vector<Range> batches_;
};

/// Cuts the sentence pairs of a corpus, in corpus order, into batches within the limits, for validation. Returns the
/// pairs of each batch, as indices in the corpus.
std::vector<std::vector<std::int32_t>> batches_in_order(const ParallelCorpus& corpus, const BatchLimits& limits);

/// A shard: a part of the sentence pairs of an update. One thread computes the gradient of a shard in one forward and
/// backward pass.
struct Shard {
  std::span<const std::int32_t> pairs;
  std::int64_t target_tokens = 0;
};

/// Cuts a batch of sentence pairs into shards, parts with about equally many target tokens, and appends the shards to
/// `shards`. The number of parts is a power of two: 1 below 256 target tokens, else at least 2, and so many that a part
/// has at most about 1024 target tokens. The activations of such a shard are small enough for the cache, and the matrix
/// products are large enough to be fast. The number of threads does not influence the cut: each shard has its own
/// dropout masks, so that another cut would change the result.
void cut_into_shards(const ParallelCorpus& corpus, std::span<const std::int32_t> pairs, std::vector<Shard>& shards);

/// Fills `batch` with the token ids of the sentence pairs `pairs` of the corpus: adds `</s>` after each source
/// sentence, `<s>` before each target input and `</s>` after each target output.
void fill_batch(const ParallelCorpus& corpus, std::span<const std::int32_t> pairs, Batch& batch);

}  // namespace heed
