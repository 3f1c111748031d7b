#include "heed/data/corpus_statistics.h"

#include <algorithm>
#include <string_view>
#include <unordered_set>

namespace heed {
namespace {

constexpr std::int32_t kOutlierRatio = 3, kOutlierDifference = 10;

/// Returns the memory of a sequence of token ids as bytes, which can be compared and hashed.
std::string_view bytes(std::span<const std::int32_t> ids) {
  return {reinterpret_cast<const char*>(ids.data()), ids.size_bytes()};
}

/// A sentence pair as a key of a hash table. Keys are compared token id by token id, so that different pairs with equal
/// hashes stay different.
struct PairKey {
  std::string_view source, target;
  bool operator==(const PairKey&) const = default;
};

struct PairHash {
  std::size_t operator()(const PairKey& key) const {
    const std::hash<std::string_view> hash;
    return hash(key.source) * 0x9e3779b97f4a7c15ULL ^ hash(key.target);
  }
};

PairKey key_of(const ParallelCorpus& corpus, std::int64_t pair) {
  return {bytes(corpus.source(pair)), bytes(corpus.target(pair))};
}

LengthStatistics length_statistics(std::vector<std::int32_t> lengths) {
  LengthStatistics out;
  if (lengths.empty()) return out;
  std::sort(lengths.begin(), lengths.end());
  std::int64_t sum = 0;
  for (const std::int32_t length : lengths) sum += length;
  out.mean = static_cast<double>(sum) / static_cast<double>(lengths.size());
  out.median = lengths[lengths.size() / 2];
  out.percentile99 = lengths[(lengths.size() - 1) * 99 / 100];
  out.longest = lengths.back();
  return out;
}

}  // namespace

CorpusStatistics corpus_statistics(const ParallelCorpus& corpus, bool one_vocabulary) {
  CorpusStatistics out;
  std::vector<std::int32_t> source_lengths, target_lengths;
  std::unordered_set<PairKey, PairHash> seen;
  seen.reserve(static_cast<std::size_t>(corpus.size()));
  const auto count = [&](std::int64_t& counter, std::int64_t& first_line, std::int64_t pair) {
    if (counter++ == 0) first_line = corpus.line(pair);
  };
  for (std::int64_t pair = 0; pair < corpus.size(); ++pair) {
    const std::int32_t source = corpus.source_tokens(pair), target = corpus.target_tokens(pair);
    source_lengths.push_back(source);
    target_lengths.push_back(target);
    const PairKey key = key_of(corpus, pair);
    if (!seen.insert(key).second) count(out.duplicates, out.first_duplicate_line, pair);
    if (one_vocabulary && key.source == key.target) count(out.copies, out.first_copy_line, pair);
    const auto [shorter, longer] = std::minmax(source, target);
    if (longer > kOutlierRatio * shorter && longer > shorter + kOutlierDifference)
      count(out.ratio_outliers, out.first_ratio_outlier_line, pair);
  }
  out.source = length_statistics(std::move(source_lengths));
  out.target = length_statistics(std::move(target_lengths));
  return out;
}

std::int64_t count_overlap(const ParallelCorpus& training, const ParallelCorpus& held_out) {
  std::unordered_set<PairKey, PairHash> wanted;
  for (std::int64_t pair = 0; pair < held_out.size(); ++pair) wanted.insert(key_of(held_out, pair));
  std::unordered_set<PairKey, PairHash> found;
  for (std::int64_t pair = 0; pair < training.size(); ++pair)
    if (const PairKey key = key_of(training, pair); wanted.contains(key)) found.insert(key);
  std::int64_t overlap = 0;
  for (std::int64_t pair = 0; pair < held_out.size(); ++pair) overlap += found.contains(key_of(held_out, pair));
  return overlap;
}

}  // namespace heed
