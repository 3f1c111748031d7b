#pragma once

#include <cstdint>
#include <optional>
#include <ostream>
#include <string>
#include <utility>
#include <vector>

#include "heed/base/log.h"
#include "heed/train/trainer_options.h"
#include "heed/train/training_length.h"

namespace heed {

/// The measurements in a progress report, which covers the updates since the previous report.
struct UpdateReport {
  TrainingProgress progress;
  /// The minimised loss, with label smoothing and guided alignment, in nats per target token.
  double loss = 0;
  /// The cross-entropy, which is the loss without label smoothing, in nats per target token.
  double cross_entropy = 0;
  /// The loss of guided alignment, without its weight, in nats per target token that has links; absent without links.
  std::optional<double> alignment = {};
  /// The fraction of the target tokens to which the model gives the highest probability, from 0 to 1.
  double accuracy = 0;
  double learning_rate = 0;
  /// The Euclidean norm of the last update's gradient, before clipping.
  double gradient_norm = 0;
  double tokens_per_second = 0;
  /// The finished fraction of the whole training, whose length is the option --after, from 0 to 1.
  double share = 0;
  /// The estimated number of seconds until the end of training; negative when unknown.
  double seconds_left = 0;
};

/// Reports how training goes: as lines of text in the log, or as one record per event on `out`, in TSV with a header
/// line or in JSON lines.
class Reporter {
 public:
  Reporter(LogFormat format, std::ostream& out, Log& log) : format_(format), out_(out), log_(log) {}

  /// Writes the measurements in `report`: a line in the text format, a record in the other formats.
  void update(const UpdateReport& report);
  /// Redraws the status line of a terminal: progress bar, perplexity, speed and time left.
  void status(const UpdateReport& report);
  /// Reports the scores of a validation. `better[i]` says whether `scores[i]`, the score by `metrics[i]`, is the best
  /// score of the training so far.
  void validation(const TrainingProgress& progress, const std::vector<Metric>& metrics,
                  const std::vector<double>& scores, const std::vector<bool>& better, double seconds);
  /// Reports any other event: `name` is "saved", "average", "rollback" or "finished". When `detail` is true, the text
  /// format shows the event only with --verbose.
  void event(const TrainingProgress& progress, const std::string& name, const std::string& text, bool detail = false);

 private:
  using Values = std::vector<std::pair<std::string, double>>;
  void record(const TrainingProgress& progress, const std::string& event, const Values& values,
              const std::string& text);

  LogFormat format_;
  std::ostream& out_;
  Log& log_;
  bool header_written_ = false;  // whether the header line of the TSV format has been written
};

/// Returns a score with the number of digits usual for its metric: "31.42" for BLEU, "12.35" for a perplexity.
std::string format_score(Metric metric, double score);

}  // namespace heed
