#include "heed/data/batches.h"

#include <algorithm>
#include <array>
#include <bit>
#include <numeric>

#include "heed/base/error.h"
#include "heed/base/random.h"

namespace heed {
namespace {

constexpr int kBuckets = 32;
/// The number of target tokens that a shard, a part of a batch, should not exceed.
constexpr std::int64_t kShardTokens = 1024;
/// The number of target tokens from which on a batch is cut into at least two parts (shards).
constexpr std::int64_t kWorthTwoShards = 256;

/// Returns the number of the length bucket for an example whose longer side has `tokens` tokens: 0 for 1-8, 1 for
/// 9-16, 2 for 17-32, ...
std::uint8_t bucket_of(std::int32_t tokens) {
  const auto above = static_cast<std::uint32_t>(std::max(tokens, 8) - 1) >> 3;
  return static_cast<std::uint8_t>(std::bit_width(above));
}

/// Cuts `order`, a list of examples, into batches within the limits. Calls emit(begin, end) for each batch, which
/// consists of elements begin ... end - 1 of `order`.
template <class Order, class Emit>
void cut_by_budget(const Examples& examples, const BatchLimits& limits, const Order& order, Emit emit) {
  std::int64_t begin = 0, tokens = 0;
  const auto count = static_cast<std::int64_t>(order.size());
  for (std::int64_t i = 0; i < count; ++i) {
    const std::int64_t more = examples.size_of(order[static_cast<std::size_t>(i)]).target;
    if (i > begin && (tokens + more > limits.target_tokens || i - begin >= limits.examples)) {
      emit(begin, i);
      begin = i;
      tokens = 0;
    }
    tokens += more;
  }
  if (begin < count) emit(begin, count);
}

}  // namespace

EpochBatches::EpochBatches(const Examples& examples, const BatchLimits& limits, std::uint64_t seed, std::int64_t window)
    : examples_(examples), limits_(limits), seed_(seed), window_(static_cast<std::uint32_t>(window)) {
  const auto count = static_cast<std::size_t>(examples.size());
  bucket_.reserve(count);
  for (std::int64_t i = 0; i < examples.size(); ++i) {
    const ExampleSize example = examples.size_of(i);
    bucket_.push_back(bucket_of(std::max(example.source, example.target)));
  }
  shuffled_.resize(count);
  order_.resize(count);
}

void EpochBatches::prepare(std::int64_t epoch) {
  std::iota(shuffled_.begin(), shuffled_.end(), 0);
  shuffle(shuffled_, RandomStream(seed_, RandomUse::shuffle, static_cast<std::uint64_t>(epoch), 2 * window_));
  // Sorts the examples by length bucket. A counting sort keeps the random order of the examples within each bucket.
  std::array<std::size_t, kBuckets + 1> start{};
  for (const std::uint8_t bucket : bucket_) ++start[bucket + std::size_t{1}];
  std::partial_sum(start.begin(), start.end(), start.begin());
  for (const std::int32_t i : shuffled_) order_[start[bucket_[static_cast<std::size_t>(i)]]++] = i;
  batches_.clear();
  cut_by_budget(examples_, limits_, order_, [&](std::int64_t begin, std::int64_t end) {
    batches_.push_back({begin, end});
  });
  shuffle(batches_, RandomStream(seed_, RandomUse::shuffle, static_cast<std::uint64_t>(epoch), 2 * window_ + 1));
}

std::vector<std::vector<std::int32_t>> batches_in_order(const Examples& examples, const BatchLimits& limits) {
  std::vector<std::int32_t> order(static_cast<std::size_t>(examples.size()));
  std::iota(order.begin(), order.end(), 0);
  std::vector<std::vector<std::int32_t>> batches;
  cut_by_budget(examples, limits, order, [&](std::int64_t begin, std::int64_t end) {
    batches.emplace_back(order.begin() + begin, order.begin() + end);
  });
  return batches;
}

std::int64_t most_parts(std::span<const Shard> shards) {
  std::int64_t most = 0;
  for (const Shard& shard : shards) most = std::max(most, shard.part + 1);
  return most;
}

void cut_into_shards(const Examples& examples, std::span<const std::int32_t> batch, std::vector<Shard>& shards) {
  const auto work_of = [](const ExampleSize& size) -> std::int64_t { return size.work > 0 ? size.work : size.target; };
  std::int64_t total = 0;
  for (const std::int32_t example : batch) total += work_of(examples.size_of(example));
  std::int64_t parts = total >= kWorthTwoShards ? 2 : 1;
  while (total > parts * kShardTokens) parts *= 2;

  // The target tokens of all examples of the batch (or what they count for), one example after another, are divided
  // into `parts` equal parts. Each part becomes a shard; an example belongs to the shard of the part in which the
  // middle target token of the example lies.
  const std::int64_t earlier = std::ssize(shards);
  const auto emit = [&](std::size_t first, std::size_t end, std::int64_t target_tokens) {
    const std::int64_t before = shards.empty() ? 0 : shards.back().first + std::ssize(shards.back().examples);
    shards.push_back({batch.subspan(first, end - first), target_tokens, before, std::ssize(shards) - earlier});
  };
  std::size_t begin = 0;
  std::int64_t tokens = 0, seen = 0, part = 0;
  for (std::size_t i = 0; i < batch.size(); ++i) {
    const ExampleSize size = examples.size_of(batch[i]);
    const std::int64_t work = work_of(size), its_part = (seen + work / 2) * parts / total;
    if (i > begin && its_part != part) {
      emit(begin, i, tokens);
      begin = i;
      tokens = 0;
    }
    part = its_part;
    tokens += size.target;
    seen += work;
  }
  if (begin < batch.size()) emit(begin, batch.size(), tokens);
}

}  // namespace heed
