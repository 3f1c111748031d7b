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

/// How training went since the last report.
struct UpdateReport {
  TrainingProgress progress;
  double loss = 0;  ///< as minimised, with label smoothing: nats per target token
  double cross_entropy = 0;
  double accuracy = 0;  ///< share of target tokens whose probability is the highest
  double learning_rate = 0;
  double gradient_norm = 0;  ///< of the last update
  double tokens_per_second = 0;
  double share = 0;         ///< of the whole training
  double seconds_left = 0;  ///< below 0: unknown
};

/// Tells how training goes: lines for people in the log, or one record an event on `out`, as TSV with a header or as
/// JSON lines.
class Reporter {
 public:
  Reporter(LogFormat format, std::ostream& out, Log& log) : format_(format), out_(out), log_(log) {}

  void update(const UpdateReport& report);
  /// The line that is redrawn on a terminal.
  void status(const UpdateReport& report);
  /// Scores of a validation; `better` says for each whether it is the best so far.
  void validation(const TrainingProgress& progress, const std::vector<Metric>& metrics,
                  const std::vector<double>& scores, const std::vector<bool>& better, double seconds);
  /// Anything else that happened: "saved", "rollback", "finished". As text, a `detail` is told only when verbose.
  void event(const TrainingProgress& progress, const std::string& name, const std::string& text, bool detail = false);

 private:
  using Values = std::vector<std::pair<std::string, double>>;
  void record(const TrainingProgress& progress, const std::string& event, const Values& values,
              const std::string& text);

  LogFormat format_;
  std::ostream& out_;
  Log& log_;
  bool header_written_ = false;  // of a TSV
};

/// A score with as many digits as people give it.
std::string format_score(Metric metric, double score);

}  // namespace heed
