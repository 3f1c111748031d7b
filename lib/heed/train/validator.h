#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "heed/metrics/bleu.h"
#include "heed/train/gradient_workers.h"
#include "heed/train/trainer_options.h"

namespace heed {

/// Translates all source sentences (ids without `</s>`) of a corpus with given parameters, to text.
using TranslateCorpus = std::function<std::vector<std::string>(ParameterValues<float>&, const ParallelCorpus&)>;

/// Scores parameters on held-out pairs.
class Validator {
 public:
  /// `references` are the raw target lines of the corpus' pairs, for BLEU.
  Validator(ParallelCorpus corpus, std::vector<std::string> references, std::vector<Metric> metrics,
            GradientWorkers& workers, TranslateCorpus translate, const BleuOptions& bleu = {});

  /// One score for each metric, all finite, with worst_score in place of one that is not: cross-entropy in nats per
  /// target token (`</s>` counts), without label smoothing; perplexity, its exponential; BLEU of greedy translations as
  /// `bleu` computes it.
  std::vector<double> run(ParameterValues<float>& parameters);

  const std::vector<Metric>& metrics() const { return metrics_; }
  /// The translations of the last run(); empty without BLEU.
  const std::vector<std::string>& translations() const { return translations_; }
  const ParallelCorpus& corpus() const { return corpus_; }

 private:
  ParallelCorpus corpus_;
  std::vector<std::vector<std::string>> references_;
  std::vector<Metric> metrics_;
  GradientWorkers& workers_;
  TranslateCorpus translate_;
  BleuOptions bleu_;
  std::vector<std::vector<std::int32_t>> batches_;
  std::vector<Shard> shards_;
  std::vector<std::string> translations_;
};

}  // namespace heed
