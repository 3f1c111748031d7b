#include "heed/decode/sampling.h"

#include <algorithm>
#include <cmath>
#include <optional>

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
/// sorted as far as they are asked for: a draw needs few of the many thousands.
class FallingScores {
 public:
  /// Begins with the row `scores`. `expected` is the number of ids that will probably be asked for, at least 1.
  void start(std::span<const float> scores, bool may_end, std::size_t expected) {
    scores_ = scores;
    expected_ = expected;
    sorted_ = 0;
    ids_.resize(scores.size());
    std::size_t possible = 0;
    for (std::size_t v = 0; v < scores.size(); ++v) {
      const auto id = static_cast<std::int32_t>(v);
      ids_[possible] = id;
      const bool is_finite = std::isfinite(scores[v]);  // pieces outside of the shortlist have minus infinity
      possible += is_finite && !is_forbidden(id) && (may_end || id != kEndId) ? 1 : 0;
    }
    ids_.resize(possible);
  }
  /// Returns whether there is an id number i, counted from 0.
  bool has(std::size_t i) {
    while (i >= sorted_ && sorted_ < ids_.size()) sort_more();
    return i < sorted_;
  }
  /// Returns id number i, which has(i) has sorted.
  std::size_t operator[](std::size_t i) const { return static_cast<std::size_t>(ids_[i]); }
  /// Returns all ids, in any order.
  const std::vector<std::int32_t>& ids() const { return ids_; }

 private:
  /// Sorts the expected number of ids, and then eight times as many each time. A heap of few ids is fastest at first;
  /// later, the ids to be sorted are parted from the others.
  void sort_more() {
    const auto better = [&](std::int32_t a, std::int32_t b) {
      const float x = scores_[static_cast<std::size_t>(a)], y = scores_[static_cast<std::size_t>(b)];
      return x != y ? x > y : a < b;
    };
    const std::size_t wanted = std::min(sorted_ == 0 ? expected_ : 8 * sorted_, ids_.size());
    const auto first = ids_.begin() + static_cast<std::ptrdiff_t>(sorted_);
    const auto last = ids_.begin() + static_cast<std::ptrdiff_t>(wanted);
    if (sorted_ == 0 && wanted < ids_.size() / 16) {
      std::partial_sort(first, last, ids_.end(), better);
    } else {
      if (last != ids_.end()) std::nth_element(first, last, ids_.end(), better);
      std::sort(first, last, better);
    }
    sorted_ = wanted;
  }

  std::span<const float> scores_;
  std::vector<std::int32_t> ids_;
  std::size_t expected_ = 1, sorted_ = 0;  // the first sorted_ ids are sorted, and come before all others
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

  /// Returns nothing if no token is possible.
  std::optional<Drawn> draw(std::span<const float> scores, bool may_end, double uniform) {
    const float top = largest_score(scores);
    double total = 0;
    const bool needs_weights = options_.temperature == 1 && options_.top_k == 0;
    weights_.resize(needs_weights ? scores.size() : 0);
    for (std::size_t v = 0; v < scores.size(); ++v) {
      const double weight = std::exp(static_cast<double>(scores[v] - top));
      total += weight;
      if (needs_weights) weights_[v] = weight;
    }
    const double log_total = static_cast<double>(top) + std::log(total);
    if (!std::isfinite(log_total)) fail_not_a_number();
    constexpr std::size_t kOfNucleus = 32;
    order_.start(scores, may_end, options_.top_k > 0 ? static_cast<std::size_t>(options_.top_k) : kOfNucleus);
    if (!order_.has(0)) return std::nullopt;
    const std::size_t token = pick(scores, uniform);
    return Drawn{static_cast<std::int32_t>(token), static_cast<float>(static_cast<double>(scores[token]) - log_total)};
  }

 private:
  /// Returns one id of order_. `uniform`, a random number in [0, 1), selects the id through the inverse of the
  /// cumulative distribution.
  std::size_t pick(std::span<const float> scores, double uniform) {
    // weights_ is relative to the best score of all, and vanishes where the best possible score is far below it.
    const float best = scores[order_[0]];
    const bool is_known = !weights_.empty() && weights_[order_[0]] > 1e-40;
    const auto weight_of = [&](std::size_t id) {
      return is_known ? weights_[id] : std::exp(static_cast<double>(scores[id] - best) / options_.temperature);
    };
    const auto weight = [&](std::size_t i) { return weight_of(order_[i]); };
    const std::size_t most = options_.top_k > 0 ? static_cast<std::size_t>(options_.top_k) : scores.size();
    double sum = 0;
    if (options_.top_k > 0) {
      for (std::size_t i = 0; i < most && order_.has(i); ++i) sum += weight(i);
    } else {
      for (const std::int32_t id : order_.ids()) sum += weight_of(static_cast<std::size_t>(id));
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
  std::vector<double> weights_;  // exp(score - best score) of each id, if the temperature is 1 and all ids may be drawn
};

struct Row {
  std::size_t sentence, result;
};

/// Returns the translations of a temperature of 0: all are that of greedy search.
std::vector<std::vector<Hypothesis>> repeat_greedy(StepModel& model, const PackedIds& source, SearchOptions options) {
  const auto results = static_cast<std::size_t>(options.results());
  options.beam_size = 1;
  options.n_best = 1;  // at the length limit, beam search also has a hypothesis that goes on instead of ending
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
      const std::optional<Drawn> drawn =
          sampler.draw({scores.row(static_cast<std::int64_t>(i)), static_cast<std::size_t>(scores.columns())},
                       length > options.min_output_length, uniform);
      if (!drawn) continue;
      hypothesis.log_probabilities.push_back(drawn->log_probability);
      hypothesis.sum += static_cast<double>(drawn->log_probability);
      if (drawn->token == kEndId) continue;
      hypothesis.ids.push_back(drawn->token);
      if (length >= options.longest(source.packed().length(static_cast<int>(s)))) continue;
      next.push_back(rows[i]);
      parents.push_back(static_cast<std::int32_t>(i));
      tokens.push_back(drawn->token);
    }
    rows = std::move(next);
    if (!rows.empty()) model.reorder(parents);
  }
  for (auto& hypotheses : out) {
    for (Hypothesis& hypothesis : hypotheses) hypothesis.score = options.final_score(hypothesis);
    keep_best(hypotheses, options.results());
  }
  return out;
}

}  // namespace heed
