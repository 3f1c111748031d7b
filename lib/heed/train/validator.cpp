#include "heed/train/validator.h"

#include <algorithm>
#include <cmath>

#include "heed/metrics/chrf.h"
#include "heed/metrics/evalb.h"
#include "heed/metrics/exact_match.h"

namespace heed {
namespace {

constexpr std::int64_t kBatchTokens = 4096;

/// Returns the score of a metric that adds up statistics of lines.
double score_lines(const TranslationMetric& metric, const std::vector<std::string>& translations,
                   const std::vector<std::string>& references) {
  const auto counter = metric.counter();
  std::vector<double> sums(metric.width()), row(metric.width());
  for (std::size_t i = 0; i < translations.size(); ++i) {
    const std::string_view reference = references[i];
    counter->set_references({&reference, 1});
    counter->count(translations[i], row);
    for (std::size_t k = 0; k < row.size(); ++k) sums[k] += row[k];
  }
  return metric.score(sums);
}

/// Returns form(line) of each line, or the lines themselves if there is no such function.
std::vector<std::string> in_form(const ExactForm& form, const std::vector<std::string>& lines) {
  if (!form) return lines;
  std::vector<std::string> out;
  for (const std::string& line : lines) out.push_back(form(line));
  return out;
}

}  // namespace

Validator::Validator(const Examples& examples, std::vector<std::string> references, std::vector<Metric> metrics,
                     TrainingWorkers& workers, TranslateCorpus translate, const BleuOptions& bleu, ExactForm exact_form)
    : examples_(examples),
      references_{std::move(references)},
      metrics_(std::move(metrics)),
      workers_(workers),
      translate_(std::move(translate)),
      bleu_(bleu),
      exact_form_(std::move(exact_form)),
      batches_(batches_in_order(examples_, {.target_tokens = kBatchTokens})) {
  for (const auto& batch : batches_) cut_into_shards(examples_, batch, shards_);
}

std::optional<ValidationScores> Validator::run(ParameterValues<float>& parameters, const InterruptGuard& interrupts) {
  const auto interrupted = [&] { return workers_.ranks().any(interrupts.signal() != 0); };
  const LossSums sums = workers_.evaluate(parameters, examples_, shards_, &interrupts);
  if (interrupted()) return std::nullopt;
  const double cross_entropy = sums.negative_log_likelihood / static_cast<double>(sums.tokens);
  std::vector<double> scores;
  translations_.clear();
  // A search is an error where the model's scores are not numbers, as they are after an update that has diverged.
  if (!std::isfinite(cross_entropy)) {
    for (const Metric metric : metrics_) scores.push_back(worst_score(metric));
    return ValidationScores{scores, false};
  }
  if (std::ranges::any_of(
          metrics_, [](Metric metric) { return metric != Metric::ce_mean_words && metric != Metric::perplexity; })) {
    translations_ = translate_(parameters, examples_, interrupts);
    if (interrupted()) return std::nullopt;
  }
  const auto score_of = [&](Metric metric) {
    switch (metric) {
      case Metric::bleu:
        return corpus_bleu(translations_, references_, bleu_).score;
      case Metric::ce_mean_words:
        return cross_entropy;
      case Metric::perplexity:
        return std::exp(cross_entropy);
      case Metric::exact:
      case Metric::accuracy:
        return score_lines(ExactMatchMetric(), in_form(exact_form_, translations_),
                           in_form(exact_form_, references_[0]));
      case Metric::evalb:
        return score_lines(EvalbMetric({.gold_tags = true, .on_bad_tree = BadTree::skip}), translations_,
                           references_[0]);
      case Metric::chrf:
        return score_lines(ChrfMetric({.lowercase = bleu_.lowercase}), translations_, references_[0]);
      case Metric::ter:
        break;
    }
    throw Error("internal: a validation does not compute " + std::string(enum_name(metric)));
  };
  for (const Metric metric : metrics_) {
    const double score = score_of(metric);
    scores.push_back(std::isfinite(score) ? score : worst_score(metric));
  }
  return ValidationScores{scores};
}

}  // namespace heed
