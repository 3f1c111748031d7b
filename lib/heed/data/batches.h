#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "heed/data/examples.h"

namespace heed {

/// The largest size of a batch of examples. An example that alone exceeds the limits is a batch of its own.
struct BatchLimits {
  std::int64_t target_tokens = 4096;  ///< target tokens of the whole batch, `</s>` included
  std::int64_t examples = INT64_MAX;
};

/// The batches of an epoch; each example is in exactly one batch. A batch contains examples of similar length: examples
/// are sorted into buckets of 1-8, 9-16, 17-32, ... tokens on the longer side, in random order within a bucket, and
/// then cut into batches, which are shuffled. The list of batches is a function of the examples, limits, seed and epoch
/// only, so that a resumed training needs nothing but the number of the next batch.
class EpochBatches {
 public:
  /// `window` is the number of the window whose examples these are (see ExampleWindows).
  EpochBatches(const Examples& examples, const BatchLimits& limits, std::uint64_t seed, std::int64_t window = 0);

  /// Computes the list of batches of the epoch number `epoch` (counted from 0). Replaces the list of an earlier epoch.
  void prepare(std::int64_t epoch);
  /// Returns the number of batches in the epoch.
  std::int64_t size() const { return static_cast<std::int64_t>(batches_.size()); }
  /// Returns the indices of the examples of one batch. The result is valid until the next call of
  /// prepare().
  std::span<const std::int32_t> operator[](std::int64_t batch) const {
    const Range& range = batches_[static_cast<std::size_t>(batch)];
    return {order_.data() + range.begin, static_cast<std::size_t>(range.end - range.begin)};
  }

 private:
  /// A batch: the elements begin ... end - 1 of order_.
  struct Range {
    std::int64_t begin, end;
  };

  const Examples& examples_;
  BatchLimits limits_;
  std::uint64_t seed_;
  std::uint32_t window_;
  std::vector<std::uint8_t> bucket_;  // the number of the length bucket of each example
  // Two lists of the indices of all examples: shuffled_ is in random order; order_ is sorted by length
  // bucket, with random order within each bucket.
  std::vector<std::int32_t> shuffled_, order_;
  std::vector<Range> batches_;
};

/// Cuts all examples, in order, into batches within the limits, for validation. Returns the indices of the examples of
/// each batch.
std::vector<std::vector<std::int32_t>> batches_in_order(const Examples& examples, const BatchLimits& limits);

/// A shard: a part of the examples of an update. One thread computes the gradient of a shard in one forward and
/// backward pass.
struct Shard {
  std::span<const std::int32_t> examples;
  std::int64_t target_tokens = 0;
  std::int64_t first = 0;  ///< the number of the first example within the update
  std::int64_t part = 0;   ///< the number of the shard within its batch
};

/// Returns the largest number of shards that a batch was cut into.
std::int64_t most_parts(std::span<const Shard> shards);

/// Cuts a batch of examples into shards, parts with about equally many target tokens (or, for examples with another
/// measure, ExampleSize::work), and appends the shards to `shards`. The number of parts is a power of two: 1 below 256
/// target tokens, else at least 2, and so many that a part has at most about 1024 target tokens. The activations of
/// such a shard are small enough for the cache, and the matrix products are large enough to be fast. The number of
/// threads does not influence the cut, because another cut would change the rounding of the gradient. `shards` holds
/// the update's earlier batches, or is empty.
void cut_into_shards(const Examples& examples, std::span<const std::int32_t> batch, std::vector<Shard>& shards);

}  // namespace heed
