#include "heed/decode/mask_predict.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "heed/text/strings/vocabulary.h"

namespace heed {
namespace {

/// A target that is being predicted.
struct PredictedTarget {
  int sentence = 0;
  float length_log_probability = 0;
  std::vector<std::int32_t> ids;
  std::vector<float> log_probabilities;  // [ids]
  // The number of tokens that count: all but </s> where the length was predicted, and otherwise those up to the first
  // </s>, if there is one.
  std::size_t size = 0;
  // Whether a position has no allowed token (a shortlist may allow none): the translation is empty.
  bool is_impossible = false;
};

class MaskPredict {
 public:
  MaskPredict(ParallelModel& model, const PackedIds& source, const SearchOptions& options)
      : model_(model), source_(source), options_(options) {}

  std::vector<std::vector<Hypothesis>> run() {
    model_.start(source_);
    const std::vector<std::vector<TargetLength>> lengths = model_.lengths();
    for (int s = 0; s < source_.sequences(); ++s) add_candidates(s, lengths[static_cast<std::size_t>(s)]);
    for (int iteration = 0; iteration < options_.iterations; ++iteration) predict(iteration);
    std::vector<std::vector<Hypothesis>> out(lengths.size());
    for (const PredictedTarget& candidate : candidates_)
      out[static_cast<std::size_t>(candidate.sentence)].push_back(finish(candidate));
    for (auto& hypotheses : out) keep_best(hypotheses, options_.results());
    return out;
  }

 private:
  int longest(int sentence) const { return options_.longest(source_.packed().length(sentence)); }

  /// Adds a candidate for each of the likeliest lengths that the options allow. If the options allow none of the
  /// lengths that the model can predict, adds one candidate with the shortest or the longest allowed length.
  void add_candidates(int sentence, std::vector<TargetLength> lengths) {
    if (model_.predicts_end()) return add(sentence, lengths.front());
    const int least = std::max(1, options_.min_output_length) + 1, most = std::max(least, longest(sentence) + 1);
    std::vector<TargetLength> allowed;
    std::ranges::copy_if(lengths, std::back_inserter(allowed),
                         [&](const TargetLength& each) { return each.tokens >= least && each.tokens <= most; });
    if (allowed.empty()) allowed.push_back({lengths.empty() || lengths.back().tokens < least ? least : most, 0});
    std::ranges::stable_sort(allowed, std::greater(), &TargetLength::log_probability);
    allowed.resize(std::min(allowed.size(), static_cast<std::size_t>(options_.length_candidates)));
    for (const TargetLength& each : allowed) add(sentence, each);
  }

  void add(int sentence, const TargetLength& length) {
    const auto tokens = static_cast<std::size_t>(length.tokens);
    PredictedTarget out;
    out.sentence = sentence;
    out.length_log_probability = length.log_probability;
    out.ids.assign(tokens, kStartId);
    out.log_probabilities.assign(tokens, 0);
    out.size = tokens;
    if (!model_.predicts_end()) {
      out.ids.back() = kEndId;
      --out.size;
    }
    candidates_.push_back(std::move(out));
  }

  /// Masks the tokens of all candidates that are to be predicted in this iteration, predicts them, and cuts candidates
  /// at their ends.
  void predict(int iteration) {
    batch_.clear();
    for (PredictedTarget& candidate : candidates_) add_rows(candidate, iteration);
    if (batch_.rows.empty()) return;
    // The likeliest tokens, of which at least one is allowed.
    const auto k = std::min<std::int64_t>(kForbidden + 1, model_.vocabulary());
    Arena arena;
    CpuContext device{arena};
    best_log_probabilities_.resize(batch_.rows.size() * static_cast<std::size_t>(k));
    best_ids_.resize(best_log_probabilities_.size());
    model_.predict(batch_, device, k, best_log_probabilities_.data(), best_ids_.data());
    for (std::size_t r = 0; r < batch_.rows.size(); ++r) {
      const auto [candidate, place] = places_[r];
      const std::size_t first = r * static_cast<std::size_t>(k);
      std::size_t at = first;
      if (std::isnan(best_log_probabilities_[first])) fail_not_a_number();
      const auto last = first + static_cast<std::size_t>(k) - 1;
      while (at < last && !is_allowed(best_ids_[at], place)) ++at;
      if (!is_allowed(best_ids_[at], place) || !std::isfinite(best_log_probabilities_[at]))
        candidate->is_impossible = true;
      candidate->ids[place] = best_ids_[at];
      candidate->log_probabilities[place] = best_log_probabilities_[at];
    }
    if (model_.predicts_end())
      for (PredictedTarget& candidate : candidates_) cut(candidate);
  }

  bool is_allowed(std::int32_t id, std::size_t place) const {
    if (id != kEndId) return !is_forbidden(id);
    return model_.predicts_end() && place >= static_cast<std::size_t>(options_.min_output_length);
  }

  /// Masks the least likely tokens of a candidate, and adds the candidate to the batch unless it has none to predict.
  void add_rows(PredictedTarget& candidate, int iteration) {
    const auto all = static_cast<std::int64_t>(candidate.size);
    const std::int64_t count = all * (options_.iterations - iteration) / options_.iterations;
    if (count == 0) return;
    order_.resize(candidate.size);
    std::iota(order_.begin(), order_.end(), std::size_t{0});
    // Repetitions come before all other tokens.
    repeats_.assign(candidate.size, false);
    for (std::size_t i = 1; i < candidate.size; ++i)
      if (candidate.ids[i] == candidate.ids[i - 1])
        repeats_[candidate.log_probabilities[i] < candidate.log_probabilities[i - 1] ? i : i - 1] = true;
    std::ranges::stable_sort(order_, std::less(),
                             [&](std::size_t i) { return std::pair(!repeats_[i], candidate.log_probabilities[i]); });
    order_.resize(static_cast<std::size_t>(count));
    std::ranges::sort(order_);
    const bool end_is_masked = model_.predicts_end() && order_.back() + 1 == candidate.size;
    for (const std::size_t place : order_) candidate.ids[place] = kStartId;
    // Where the end is to be predicted anew, it may also be later.
    for (std::size_t place = candidate.size; end_is_masked && place < candidate.ids.size(); ++place)
      order_.push_back(place);
    places_.resize(batch_.rows.size());
    for (const std::size_t place : order_) {
      batch_.rows.push_back(batch_.targets.tokens() + static_cast<std::int32_t>(place));
      places_.push_back({&candidate, place});
    }
    batch_.targets.append(candidate.ids);
    batch_.sentences.push_back(candidate.sentence);
  }

  /// Ends a candidate at its first </s>, and masks the tokens after it.
  static void cut(PredictedTarget& candidate) {
    const auto end = std::ranges::find(candidate.ids, kEndId);
    candidate.size = static_cast<std::size_t>(end - candidate.ids.begin()) + (end == candidate.ids.end() ? 0 : 1);
    std::fill(candidate.ids.begin() + static_cast<std::ptrdiff_t>(candidate.size), candidate.ids.end(), kStartId);
  }

  Hypothesis finish(const PredictedTarget& candidate) const {
    Hypothesis out;
    if (candidate.is_impossible) return out;
    const auto end = candidate.ids.begin() + static_cast<std::ptrdiff_t>(candidate.size);
    out.ids.assign(candidate.ids.begin(), end);
    out.log_probabilities.assign(candidate.log_probabilities.begin(),
                                 candidate.log_probabilities.begin() + static_cast<std::ptrdiff_t>(candidate.size));
    if (!model_.predicts_end()) {
      out.log_probabilities.push_back(candidate.length_log_probability);
    } else if (const auto most = static_cast<std::size_t>(longest(candidate.sentence));
               !out.ids.empty() && out.ids.back() == kEndId && out.ids.size() <= most + 1) {
      out.ids.pop_back();
    } else {
      out.ids.resize(std::min(out.ids.size(), most));
      out.log_probabilities.resize(out.ids.size());
    }
    for (const float each : out.log_probabilities) out.sum += static_cast<double>(each);
    out.score = options_.final_score(out);
    return out;
  }

  /// The number of tokens that no hypothesis may have: <pad>, <unk>, <s> and, perhaps, </s>.
  static constexpr std::int64_t kForbidden = 4;

  ParallelModel& model_;
  const PackedIds& source_;
  const SearchOptions& options_;
  std::vector<PredictedTarget> candidates_;
  MaskedBatch batch_;
  // The candidate and the place in it of each element of batch_.rows.
  std::vector<std::pair<PredictedTarget*, std::size_t>> places_;
  std::vector<std::size_t> order_;
  std::vector<bool> repeats_;
  std::vector<float> best_log_probabilities_;
  std::vector<std::int32_t> best_ids_;
};

}  // namespace

std::vector<std::vector<Hypothesis>> mask_predict(ParallelModel& model, const PackedIds& source,
                                                  const SearchOptions& options) {
  if (source.sequences() == 0) return {};
  return MaskPredict(model, source, options).run();
}

}  // namespace heed
