#include "heed/decode/sampling.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "heed/base/random.h"
#include "heed/decode/beam_search.h"
#include "heed/text/strings/vocabulary.h"

namespace heed {
namespace {

/// Returns a hash of the ids of a source sentence. The hash selects the sentence's stream of random numbers, which
/// therefore depends neither on the other sentences nor on the line number.
std::uint64_t hash_ids(std::span<const std::int32_t> ids) {
  std::uint64_t hash = 0xcbf29ce484222325ULL;
  for (const std::int32_t id : ids) hash = (hash ^ static_cast<std::uint32_t>(id)) * 0x100000001b3ULL;
  return hash;
}

struct Drawn {
  std::int32_t token;
  float log_probability;
};

/// Draws tokens from softmax(scores / temperature), restricted to the k likeliest tokens (--top-k) and to the nucleus
/// (--top-p). The log-probability of the drawn token is computed without temperature and restrictions.
class Sampler {
 public:
  explicit Sampler(const SearchOptions& options) : options_(options) {}

  Drawn draw(std::span<const float> scores, bool may_end, double uniform) {
    const float top = *std::max_element(scores.begin(), scores.end());
    double total = 0;
    for (const float score : scores) total += std::exp(static_cast<double>(score - top));
    const double log_total = static_cast<double>(top) + std::log(total);
    if (!std::isfinite(log_total)) fail_not_a_number();
    order_.clear();
    for (std::size_t v = 0; v < scores.size(); ++v) {
      const auto id = static_cast<std::int32_t>(v);
      const bool possible = std::isfinite(scores[v]);  // pieces outside of the shortlist have minus infinity
      if (possible && !is_forbidden(id) && (may_end || id != kEndId)) order_.push_back(id);
    }
    const auto better = [&](std::int32_t a, std::int32_t b) {
      const float x = scores[static_cast<std::size_t>(a)], y = scores[static_cast<std::size_t>(b)];
      return x != y ? x > y : a < b;
    };
    if (order_.empty()) return {kEndId, 0};  // no token is possible: the translation ends
    const bool cut = options_.top_k > 0 && static_cast<std::size_t>(options_.top_k) < order_.size();
    const std::size_t keep = cut ? static_cast<std::size_t>(options_.top_k) : order_.size();
    std::partial_sort(order_.begin(), order_.begin() + static_cast<std::ptrdiff_t>(keep), order_.end(), better);
    order_.resize(keep);
    const std::int32_t token = pick(scores, uniform);
    return {token, static_cast<float>(static_cast<double>(scores[static_cast<std::size_t>(token)]) - log_total)};
  }

 private:
  /// Returns one id of order_, whose ids are sorted by falling score. `uniform`, a random number in [0, 1), selects the
  /// id through the inverse of the cumulative distribution.
  std::int32_t pick(std::span<const float> scores, double uniform) {
    const float best = scores[static_cast<std::size_t>(order_[0])];
    weights_.clear();
    double sum = 0;
    for (const std::int32_t id : order_) {
      weights_.push_back(
          std::exp(static_cast<double>(scores[static_cast<std::size_t>(id)] - best) / options_.temperature));
      sum += weights_.back();
    }
    // The nucleus is the shortest beginning of order_ whose probabilities add up to top_p, at least one token.
    std::size_t count = 0;
    double nucleus = 0;
    while (count < weights_.size() && (count == 0 || nucleus < options_.top_p * sum)) nucleus += weights_[count++];
    double left = uniform * nucleus;
    for (std::size_t i = 0; i + 1 < count; ++i) {
      left -= weights_[i];
      if (left < 0) return order_[i];
    }
    return order_[count - 1];
  }

  const SearchOptions& options_;
  std::vector<std::int32_t> order_;
  std::vector<double> weights_;
};

struct Row {
  std::size_t sentence, result;
};

/// Returns the translations of a temperature of 0: all are that of greedy search.
std::vector<std::vector<Hypothesis>> repeat_greedy(StepModel& model, const PackedIds& source, SearchOptions options) {
  const auto results = static_cast<std::size_t>(options.results());
  options.beam_size = 1;
  std::vector<std::vector<Hypothesis>> out = beam_search(model, source, options);
  for (std::vector<Hypothesis>& hypotheses : out) hypotheses.resize(results, Hypothesis(hypotheses.front()));
  return out;
}

}  // namespace

std::vector<std::vector<Hypothesis>> sample(StepModel& model, const PackedIds& source, const SearchOptions& options) {
  if (options.temperature == 0) return repeat_greedy(model, source, options);
  const auto sentences = static_cast<std::size_t>(source.sequences());
  const auto results = static_cast<std::size_t>(options.results());
  std::vector<std::vector<Hypothesis>> out(sentences, std::vector<Hypothesis>(results));
  std::vector<RandomStream> streams;
  std::vector<Row> rows;
  std::vector<std::int32_t> tokens, parents;
  for (std::size_t s = 0; s < sentences; ++s) {
    const std::uint64_t hash = hash_ids(source.sequence(static_cast<int>(s)));
    for (std::size_t r = 0; r < results; ++r) {
      rows.push_back({s, r});
      parents.push_back(static_cast<std::int32_t>(s));
      streams.emplace_back(options.seed, RandomUse::sampling, hash, static_cast<std::uint32_t>(r));
    }
  }
  model.start(source);
  model.reorder(parents);
  tokens.assign(rows.size(), kStartId);
  Sampler sampler(options);
  for (int length = 1; !rows.empty(); ++length) {
    const Tensor<float> scores = model.step(tokens);
    parents.clear();
    tokens.clear();
    std::vector<Row> next;
    for (std::size_t i = 0; i < rows.size(); ++i) {
      const auto [s, r] = rows[i];
      Hypothesis& hypothesis = out[s][r];
      const double uniform = streams[s * results + r].uniform(static_cast<std::uint64_t>(length));
      const Drawn drawn =
          sampler.draw({scores.row(static_cast<std::int64_t>(i)), static_cast<std::size_t>(scores.columns())},
                       length > options.min_output_length, uniform);
      hypothesis.log_probabilities.push_back(drawn.log_probability);
      hypothesis.sum += static_cast<double>(drawn.log_probability);
      if (drawn.token == kEndId) continue;
      hypothesis.ids.push_back(drawn.token);
      if (length >= options.longest(source.packed().length(static_cast<int>(s)))) continue;
      next.push_back(rows[i]);
      parents.push_back(static_cast<std::int32_t>(i));
      tokens.push_back(drawn.token);
    }
    rows = std::move(next);
    if (!rows.empty()) model.reorder(parents);
  }
  for (auto& hypotheses : out) {
    for (Hypothesis& hypothesis : hypotheses)
      hypothesis.score = options.final_score(hypothesis.sum, static_cast<int>(hypothesis.log_probabilities.size()));
    keep_best(hypotheses, options.results());
  }
  return out;
}

}  // namespace heed
