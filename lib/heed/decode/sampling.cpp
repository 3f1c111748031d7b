#include "heed/decode/sampling.h"

#include <algorithm>
#include <cmath>
#include <limits>

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

/// The ids that may be drawn from a row of scores, by falling score; ids of equal scores by rising id. The ids are
/// found and sorted as far as they are asked for: a draw needs few of the many thousands.
class FallingScores {
 public:
  /// Begins with the row `scores`. `scale` is a difference of scores that matters: the first ids to be found are within
  /// four times this difference of the best one.
  void start(std::span<const float> scores, bool may_end, double scale) {
    scores_ = scores;
    may_end_ = may_end;
    ids_.clear();
    best_ = kLowest;
    for (std::size_t v = 0; v < scores.size(); ++v)
      if (scores[v] > best_ && is_possible(static_cast<std::int32_t>(v))) best_ = scores[v];
    found_from_ = std::numeric_limits<float>::infinity();
    width_ = 4 * scale;
  }
  /// Returns the best score; the lowest number of all where no id may be drawn.
  float best() const { return best_; }
  /// Returns whether an id may be drawn; its score must be finite.
  bool is_possible(std::int32_t id) const { return !is_forbidden(id) && (may_end_ || id != kEndId); }
  /// Returns whether there is an id number i, counted from 0.
  bool has(std::size_t i) {
    while (i >= ids_.size() && found_from_ > kLowest) find_more();
    return i < ids_.size();
  }
  /// Returns id number i, which has(i) has found.
  std::int32_t operator[](std::size_t i) const { return ids_[i]; }

 private:
  static constexpr float kLowest = std::numeric_limits<float>::lowest();  // pieces outside of a shortlist are below it

  /// Finds and sorts the ids whose scores are at most `width_` below the best one.
  void find_more() {
    const float from = width_ < kWidest ? static_cast<float>(static_cast<double>(best_) - width_) : kLowest;
    const auto known = static_cast<std::ptrdiff_t>(ids_.size());
    for (std::size_t v = 0; v < scores_.size(); ++v)
      if (scores_[v] >= from && scores_[v] < found_from_ && is_possible(static_cast<std::int32_t>(v)))
        ids_.push_back(static_cast<std::int32_t>(v));
    std::sort(ids_.begin() + known, ids_.end(), [&](std::int32_t a, std::int32_t b) {
      const float x = scores_[static_cast<std::size_t>(a)], y = scores_[static_cast<std::size_t>(b)];
      return x != y ? x > y : a < b;
    });
    found_from_ = from;
    width_ *= 1.5;
  }

  static constexpr double kWidest = 1e3;  // beyond it, all other ids are found at once

  std::span<const float> scores_;
  bool may_end_ = true;
  std::vector<std::int32_t> ids_;  // all with a score of found_from_ or more
  float best_ = 0, found_from_ = 0;
  double width_ = 0;
};

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
    top_ = *std::max_element(scores.begin(), scores.end());
    double total = 0;
    weights_.clear();
    for (const float score : scores) {
      weights_.push_back(std::exp(static_cast<double>(score - top_)));
      total += weights_.back();
    }
    const double log_total = static_cast<double>(top_) + std::log(total);
    if (!std::isfinite(log_total)) fail_not_a_number();
    order_.start(scores, may_end, options_.temperature);
    if (!order_.has(0)) return {kEndId, 0};  // no token is possible: the translation ends
    const std::int32_t token = pick(scores, uniform);
    return {token, static_cast<float>(static_cast<double>(scores[static_cast<std::size_t>(token)]) - log_total)};
  }

 private:
  /// Returns one id of order_. `uniform`, a random number in [0, 1), selects the id through the inverse of the
  /// cumulative distribution.
  std::int32_t pick(std::span<const float> scores, double uniform) {
    // weights_ has a temperature of 1, and may vanish where the best possible score is far below the best one.
    const bool is_known = options_.temperature == 1 && order_.best() > top_ - 100;
    const auto weight_of = [&](std::size_t id) {
      if (is_known) return weights_[id];
      return std::exp(static_cast<double>(scores[id] - order_.best()) / options_.temperature);
    };
    const auto weight = [&](std::size_t i) { return weight_of(static_cast<std::size_t>(order_[i])); };
    const std::size_t most = options_.top_k > 0 ? static_cast<std::size_t>(options_.top_k) : scores.size();
    double sum = 0;
    if (options_.top_k > 0) {
      for (std::size_t i = 0; i < most && order_.has(i); ++i) sum += weight(i);
    } else {
      for (std::size_t v = 0; v < scores.size(); ++v)
        if (order_.is_possible(static_cast<std::int32_t>(v))) sum += weight_of(v);
    }
    // The nucleus is the shortest beginning of order_ whose probabilities add up to top_p, at least one token.
    double nucleus = sum;
    std::size_t count = most;
    if (options_.top_p < 1) {
      nucleus = 0;
      for (count = 0; count < most && order_.has(count) && (count == 0 || nucleus < options_.top_p * sum); ++count)
        nucleus += weight(count);
    }
    std::size_t i = 0;
    for (double left = uniform * nucleus - weight(0); left >= 0 && i + 1 < count && order_.has(i + 1);)
      left -= weight(++i);
    return order_[i];
  }

  const SearchOptions& options_;
  FallingScores order_;
  float top_ = 0;                // the best score, possible or not
  std::vector<double> weights_;  // exp(score - top_) of each id
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
