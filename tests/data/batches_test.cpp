#include "heed/data/batches.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <map>

#include "heed/data/parallel_corpus.h"
#include "heed/text/strings/vocabulary.h"

using namespace heed;

namespace {

/// Returns a corpus with sentences of 1 to 40 pieces.
ParallelCorpus some_corpus(int pairs) {
  ParallelCorpus corpus;
  for (int i = 0; i < pairs; ++i) {
    const std::vector<std::int32_t> source(static_cast<std::size_t>(1 + i * i % 23), 4 + i % 7);
    const std::vector<std::int32_t> target(static_cast<std::size_t>(1 + i * 7 % 40), 5 + i % 5);
    corpus.add(source, target, i + 1);
  }
  return corpus;
}

std::vector<std::vector<std::int32_t>> list(const EpochBatches& batches) {
  std::vector<std::vector<std::int32_t>> out;
  for (std::int64_t i = 0; i < batches.size(); ++i) out.emplace_back(batches[i].begin(), batches[i].end());
  return out;
}

std::int64_t tokens_of(const ParallelCorpus& corpus, std::span<const std::int32_t> pairs) {
  std::int64_t sum = 0;
  for (const std::int32_t pair : pairs) sum += corpus.target_tokens(pair);
  return sum;
}

}  // namespace

TEST_CASE("an epoch has each pair exactly once and keeps the budget") {
  const ParallelCorpus corpus = some_corpus(1000);
  for (const BatchLimits limits :
       {BatchLimits{.target_tokens = 200}, BatchLimits{.target_tokens = INT64_MAX, .examples = 64},
        BatchLimits{.target_tokens = 30, .examples = 3}}) {
    EpochBatches batches(corpus, limits, 7);
    for (const std::int64_t epoch : {0, 1, 5}) {
      batches.prepare(epoch);
      std::vector<int> seen(1000);
      for (std::int64_t i = 0; i < batches.size(); ++i) {
        CHECK(!batches[i].empty());
        CHECK((batches[i].size() == 1 || tokens_of(corpus, batches[i]) <= limits.target_tokens));
        CHECK(static_cast<std::int64_t>(batches[i].size()) <= limits.examples);
        for (const std::int32_t pair : batches[i]) ++seen[static_cast<std::size_t>(pair)];
      }
      CHECK(std::all_of(seen.begin(), seen.end(), [](int count) { return count == 1; }));
    }
  }
}

TEST_CASE("the list is a function of seed and epoch, whatever was prepared before") {
  const ParallelCorpus corpus = some_corpus(300);
  EpochBatches one(corpus, {.target_tokens = 100}, 7), two(corpus, {.target_tokens = 100}, 7),
      other(corpus, {.target_tokens = 100}, 8);
  one.prepare(0);
  const auto first = list(one);
  one.prepare(3);
  two.prepare(3);
  CHECK(list(one) == list(two));
  CHECK(list(one) != first);
  other.prepare(3);
  CHECK(list(one) != list(other));
}

TEST_CASE("pairs of a batch come from one length bucket or two neighbours, and batches are shuffled") {
  const ParallelCorpus corpus = some_corpus(2000);
  EpochBatches batches(corpus, {.target_tokens = 300}, 1);
  batches.prepare(0);
  const auto bucket = [&](std::int32_t pair) {
    const std::int32_t longer = std::max(corpus.source_tokens(pair), corpus.target_tokens(pair));
    return longer <= 8 ? 0 : longer <= 16 ? 1 : longer <= 32 ? 2 : 3;
  };
  std::map<std::pair<int, int>, int> kinds;
  int descents = 0, before = 0;
  for (std::int64_t i = 0; i < batches.size(); ++i) {
    int low = 9, high = 0;
    for (const std::int32_t pair : batches[i]) {
      low = std::min(low, bucket(pair));
      high = std::max(high, bucket(pair));
    }
    CHECK(high - low <= 1);
    ++kinds[{low, high}];
    descents += low < before;
    before = low;
  }
  CHECK((kinds[{0, 1}] <= 1 && kinds[{1, 2}] <= 1 && kinds[{2, 3}] <= 1));
  CHECK(descents > 10);
}

TEST_CASE("shards cover a batch once, in order, about equally") {
  const ParallelCorpus corpus = some_corpus(3000);
  for (const std::int64_t budget : {100, 255, 600, 2048, 4096, 10000}) {
    const auto batches = batches_in_order(corpus, {.target_tokens = budget});
    const auto& pairs = batches[0];
    const std::int64_t total = tokens_of(corpus, pairs);
    std::vector<Shard> shards;
    cut_into_shards(corpus, pairs, shards);
    std::size_t at = 0;
    for (const Shard& shard : shards) {
      CHECK(shard.target_tokens == tokens_of(corpus, shard.examples));
      CHECK(shard.target_tokens <= 1024 + 40);
      CHECK(shard.target_tokens >= total / static_cast<std::int64_t>(shards.size()) - 41);
      for (const std::int32_t pair : shard.examples) CHECK(pair == pairs[at++]);
    }
    CHECK(at == pairs.size());
    CHECK((shards.size() & (shards.size() - 1)) == 0);
    CHECK((shards.size() > 1) == (total >= 256));
  }
}

TEST_CASE("one sentence is one shard however long it is") {
  ParallelCorpus corpus;
  corpus.add(std::vector<std::int32_t>(5000, 4), std::vector<std::int32_t>(5000, 4), 1);
  const std::vector<std::int32_t> pairs = {0};
  std::vector<Shard> shards;
  cut_into_shards(corpus, pairs, shards);
  REQUIRE(shards.size() == 1);
  CHECK(shards[0].target_tokens == 5001);
}

TEST_CASE("a packed batch has <s> and </s> in their places") {
  ParallelCorpus corpus;
  corpus.add(std::vector<std::int32_t>{7, 8}, std::vector<std::int32_t>{9}, 1);
  corpus.add(std::vector<std::int32_t>{10}, std::vector<std::int32_t>{11, 12, 13}, 2);
  Batch batch;
  const std::vector<std::int32_t> pairs = {1, 0};
  for (int round = 0; round < 2; ++round) corpus.fill(pairs, batch);
  CHECK(batch.source.ids == std::vector<std::int32_t>{10, kEndId, 7, 8, kEndId});
  CHECK(batch.source.offsets == std::vector<std::int32_t>{0, 2, 5});
  CHECK(batch.target_in.ids == std::vector<std::int32_t>{kStartId, 11, 12, 13, kStartId, 9});
  CHECK(batch.target_in.offsets == std::vector<std::int32_t>{0, 4, 6});
  CHECK(batch.target_out == std::vector<std::int32_t>{11, 12, 13, kEndId, 9, kEndId});
}
