#pragma once

#include <cfloat>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "heed/config/fields.h"
#include "heed/data/batches.h"
#include "heed/data/encode_corpus.h"
#include "heed/metrics/metric.h"
#include "heed/model/model.h"

namespace heed {

enum class PrecisionChoice { automatic, float32, bfloat16 };
enum class OnDivergence { rollback, skip, stop };
enum class LogFormat { text, tsv, jsonl };

template <>
struct EnumNames<PrecisionChoice> {
  static constexpr std::pair<PrecisionChoice, std::string_view> values[] = {{PrecisionChoice::automatic, "auto"},
                                                                            {PrecisionChoice::float32, "float32"},
                                                                            {PrecisionChoice::bfloat16, "bfloat16"}};
};
template <>
struct EnumNames<OnDivergence> {
  static constexpr std::pair<OnDivergence, std::string_view> values[] = {
      {OnDivergence::rollback, "rollback"}, {OnDivergence::skip, "skip"}, {OnDivergence::stop, "stop"}};
};
template <>
struct EnumNames<LogFormat> {
  static constexpr std::pair<LogFormat, std::string_view> values[] = {
      {LogFormat::text, "text"}, {LogFormat::tsv, "tsv"}, {LogFormat::jsonl, "jsonl"}};
};
/// The metrics that a validation can compute.
constexpr auto kValidationMetrics = enum_names(Metric::bleu, Metric::chrf, Metric::exact, Metric::evalb,
                                               Metric::accuracy, Metric::ce_mean_words, Metric::perplexity);

/// Returns the score that replaces a NaN or infinite score of a validation. A validation with such a score is never the
/// best one.
inline double worst_score(Metric metric) {
  return larger_is_better(metric) ? 0 : DBL_MAX;
}

/// The options of `train` that decide how sentence pairs are grouped into batches and how an update is computed.
struct BatchOptions {
  std::optional<std::int64_t> mini_batch, mini_batch_words;
  int optimizer_delay = 1;
  int max_length = 256;
  OnLong on_long = OnLong::skip;
  std::optional<double> bpe_dropout = {}, sample_alpha = {};
  double label_smoothing = 0.1;
  double r_drop = 0;
  std::vector<std::string> teacher;
  double teacher_weight = 0.5;
  std::optional<double> guided_alignment_weight = {};
  double exponential_smoothing = 0;
  PrecisionChoice precision = PrecisionChoice::automatic;
  std::int64_t seed = 1;
  std::optional<std::int64_t> shuffle_window = {};

  template <class Visitor>
  void fields(Visitor& visit) {
    visit.section("Batches and loss");
    visit(mini_batch, {.name = "mini-batch",
                       .help = "at most N pairs in a batch (if not given: 128 images with labels, else no limit)",
                       .value = "N",
                       .min = 1});
    visit(mini_batch_words,
          {.name = "mini-batch-words",
           .help = "at most N target tokens in a batch (if not given: 4096; no limit with labels or with --mini-batch)",
           .value = "N",
           .min = 1});
    visit(optimizer_delay, {.name = "optimizer-delay",
                            .help = "number of batches whose gradients are summed for one update",
                            .value = "N",
                            .min = 1,
                            .max = 4096});
    visit(max_length, {.name = "max-length",
                       .help = "longest side of a training pair in tokens, </s> included",
                       .value = "N",
                       .min = 2,
                       .max = 1 << 20});
    visit(on_long, {.name = "on-long", .help = "what to do with a longer pair: leave it out, cut it off, or stop"});
    visit(bpe_dropout, {.name = "bpe-dropout",
                        .help = "cut words into pieces anew in each epoch, each merge left out with probability P",
                        .value = "P",
                        .min = 0,
                        .max = 1});
    visit(sample_alpha,
          {.name = "sample-alpha",
           .help = "unigram models: draw the pieces anew in each epoch, by their probability to the power A",
           .value = "A",
           .min = 0,
           .max = 1000});
    visit(label_smoothing, {.name = "label-smoothing",
                            .help = "share of the target's probability that is spread over the vocabulary",
                            .value = "P",
                            .min = 0,
                            .max = 0.99});
    visit(r_drop, {.name = "r-drop",
                   .help = "compute each batch twice, and let the predictions agree despite the dropout; 0: off",
                   .value = "A",
                   .min = 0,
                   .max = 1000,
                   .implicit = "5"});
    visit(teacher, {.name = "teacher",
                    .help = "also learn what these models predict (their mean), of the same vocabularies",
                    .value = "A.h5",
                    .file = FileUse::read});
    visit(teacher_weight, {.name = "teacher-weight",
                           .help = "share of the target's probability that the prediction of --teacher takes",
                           .value = "W",
                           .min = 0,
                           .max = 1});
    visit(guided_alignment_weight, {.name = "guided-alignment-weight",
                                    .help = "weight of the loss of --guided-alignment (if not given: 0.1)",
                                    .value = "W",
                                    .min = 0,
                                    .max = 1000});
    visit(exponential_smoothing,
          {.name = "exponential-smoothing",
           .help = "validate and save a moving average of the parameters, in which an update weighs F; 0: off",
           .value = "F",
           .min = 0,
           .max = 1,
           .implicit = "1e-4"});
    visit(precision, {.name = "precision", .help = "arithmetic of matrix products; auto: bfloat16 where it is fast"});
    visit(seed,
          {.name = "seed", .help = "seed of initialisation, dropout and the order of batches", .value = "N", .min = 0});
    visit(shuffle_window,
          {.name = "shuffle-window",
           .help = "keep the text on disk, and only N pairs, which are shuffled together, in memory (--tempdir)",
           .value = "N",
           .min = 1000,
           .max = 1e9});
  }

  LossOptions loss() const {
    return {.label_smoothing = label_smoothing,
            .alignment_weight = guided_alignment_weight.value_or(0.1),
            .consistency = r_drop};
  }
  BatchLimits limits() const {
    BatchLimits out;
    if (mini_batch) {
      out.examples = *mini_batch;
      out.target_tokens = INT64_MAX;
    }
    if (mini_batch_words) out.target_tokens = *mini_batch_words;
    return out;
  }
};

/// The options of `train` that decide how long training lasts, how often it saves and validates, and what it keeps and
/// reports.
struct RunOptions {
  std::string after = "20e";
  std::optional<std::string> save_freq, disp_freq;
  std::string valid_freq = "1e";
  std::vector<Metric> valid_metrics = {Metric::perplexity, Metric::bleu};
  int early_stopping = 0;
  bool keep_best = false;
  int keep_last = 0;
  int average_last = 0;
  OnDivergence on_divergence = OnDivergence::rollback;
  LogFormat log_format = LogFormat::text;
  std::string plot;
  std::vector<std::string> plot_with;

  template <class Visitor>
  void fields(Visitor& visit) {
    visit.section("Run control");
    visit(after, {.name = "after",
                  .help = "how long to train: epochs (20e), updates (100Ku), target tokens (1Gt) or hours (8h)",
                  .value = "AMOUNT"});
    visit(save_freq, {.name = "save-freq",
                      .help = "how often to save (if not given: 0.1h, or 1e with --keep-last or --average-last)",
                      .value = "AMOUNT"});
    visit(valid_freq, {.name = "valid-freq", .help = "how often to validate", .value = "AMOUNT"});
    visit(disp_freq,
          {.name = "disp-freq", .help = "how often to report (if not given: every 10 seconds)", .value = "AMOUNT"});
    visit(valid_metrics, {.name = "valid-metrics",
                          .help = "metrics of validation; early stopping uses the first one",
                          .only = kValidationMetrics,
                          .preset = true});
    visit(early_stopping, {.name = "early-stopping",
                           .help = "stop after N validations in which the first metric was not better; 0: never",
                           .value = "N",
                           .min = 0});
    visit(keep_best, {.name = "keep-best", .help = "keep the best model by each metric, as MODEL.best-METRIC.h5"});
    visit(keep_last,
          {.name = "keep-last", .help = "keep the last N saved models, as MODEL.update-N.h5", .value = "N", .min = 0});
    visit(average_last, {.name = "average-last",
                         .help = "at the end, replace the model by the average of the last N saved models",
                         .value = "N",
                         .min = 0,
                         .max = 1000});
    visit(on_divergence,
          {.name = "on-divergence",
           .help = "if loss or gradient is not finite: skip the update and go back if it repeats, skip, or stop"});
    visit(log_format, {.name = "log-format", .help = "reports as text, or as tsv or jsonl records on stdout"});
    visit(plot, {.name = "plot",
                 .help = "draw the learning curve to this file",
                 .value = "FILE.svg",
                 .file = FileUse::written});
    visit(plot_with,
          {.name = "plot-with",
           .help = "compare: draw the validation curves of this training and of the trainings of these models",
           .value = "MODEL.h5",
           .file = FileUse::read});
  }
};

}  // namespace heed
