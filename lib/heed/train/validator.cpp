#include "heed/train/validator.h"

#include <algorithm>
#include <cmath>

namespace heed {
namespace {

constexpr std::int64_t kBatchTokens = 4096;

bool has(const std::vector<Metric>& metrics, Metric metric) {
  return std::find(metrics.begin(), metrics.end(), metric) != metrics.end();
}

}  // namespace

Validator::Validator(const Examples& examples, std::vector<std::string> references, std::vector<Metric> metrics,
                     GradientWorkers& workers, TranslateCorpus translate, const BleuOptions& bleu)
    : examples_(examples),
      references_{std::move(references)},
      metrics_(std::move(metrics)),
      workers_(workers),
      translate_(std::move(translate)),
      bleu_(bleu),
      batches_(batches_in_order(examples_, {.target_tokens = kBatchTokens})) {
  for (const auto& batch : batches_) cut_into_shards(examples_, batch, shards_);
}

std::vector<double> Validator::run(ParameterValues<float>& parameters) {
  double cross_entropy = 0, bleu = 0;
  if (has(metrics_, Metric::ce_mean_words) || has(metrics_, Metric::perplexity)) {
    const LossSums sums = workers_.evaluate(parameters, examples_, shards_);
    cross_entropy = sums.negative_log_likelihood / static_cast<double>(sums.tokens);
  }
  if (has(metrics_, Metric::bleu)) {
    translations_ = translate_(parameters, examples_);
    bleu = corpus_bleu(translations_, references_, bleu_).score;
  }
  std::vector<double> scores;
  const auto score_of = [&](Metric metric) {
    switch (metric) {
      case Metric::bleu:
        return bleu;
      case Metric::ce_mean_words:
        return cross_entropy;
      case Metric::perplexity:
        return std::exp(cross_entropy);
      case Metric::chrf:
      case Metric::ter:
      case Metric::exact:
      case Metric::evalb:
        break;
    }
    throw Error("internal: a validation does not compute " + std::string(enum_name(metric)));
  };
  for (const Metric metric : metrics_) {
    const double score = score_of(metric);
    scores.push_back(std::isfinite(score) ? score : worst_score(metric));
  }
  return scores;
}

}  // namespace heed
