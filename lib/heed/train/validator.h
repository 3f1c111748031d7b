#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "heed/metrics/bleu.h"
#include "heed/train/gradient_workers.h"
#include "heed/train/trainer_options.h"

namespace heed {

/// A function that translates the sources of all examples with the given parameters and returns the text. Translations
/// may be missing when the InterruptGuard has caught a signal.
using TranslateCorpus =
    std::function<std::vector<std::string>(ParameterValues<float>&, const Examples&, const InterruptGuard&)>;

/// A function that returns the form of a line in which exact match compares it.
using ExactForm = std::function<std::string(const std::string&)>;

/// The result of one validation.
struct ValidationScores {
  std::vector<double> scores;  ///< one score for each metric
  bool finite = true;          ///< whether the cross-entropy is finite; if not, all scores are worst_score()
};

/// Computes the validation scores of parameters on held-out examples.
class Validator {
 public:
  /// `examples` must outlive the Validator. `references` are their raw target lines, in order, with which
  /// translations are compared. chrF lower-cases both if `bleu` does. Exact match compares the exact_form() of both, or
  /// the lines as they are if there is no such function.
  Validator(const Examples& examples, std::vector<std::string> references, std::vector<Metric> metrics,
            TrainingWorkers& workers, TranslateCorpus translate, const BleuOptions& bleu = {},
            ExactForm exact_form = {});

  /// Returns the scores of the parameters. Cross-entropy is in nats per target token, with `</s>` counted and without
  /// label smoothing; perplexity is the exponential of the cross-entropy; BLEU, chrF, exact match and evalb compare
  /// greedy translations as the program `bleu` does (evalb with --evalb-gold-tags). A score that is not finite is
  /// replaced by worst_score(). If the cross-entropy is not finite, all scores are replaced, and nothing is translated.
  /// When `interrupts` has caught a signal on any rank, all ranks give the validation up after their present batches
  /// and return nothing.
  std::optional<ValidationScores> run(ParameterValues<float>& parameters, const InterruptGuard& interrupts);

  const std::vector<Metric>& metrics() const { return metrics_; }
  /// Returns the translations of the last run(); none when no metric needs them.
  const std::vector<std::string>& translations() const { return translations_; }

 private:
  const Examples& examples_;
  std::vector<std::vector<std::string>> references_;
  std::vector<Metric> metrics_;
  TrainingWorkers& workers_;
  TranslateCorpus translate_;
  BleuOptions bleu_;
  ExactForm exact_form_;
  std::vector<std::vector<std::int32_t>> batches_;
  std::vector<Shard> shards_;
  std::vector<std::string> translations_;
};

}  // namespace heed
