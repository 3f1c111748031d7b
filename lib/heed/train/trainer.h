#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <vector>

#include "heed/base/signals.h"
#include "heed/checkpoint/checkpoint.h"
#include "heed/train/reporter.h"
#include "heed/train/resume.h"
#include "heed/train/update_step.h"
#include "heed/train/validator.h"

namespace heed {

/// Trains from wherever `run` stands until RunOptions::after is reached, validates, saves, keeps and averages. All that
/// decides the result is in `run` and in the options, so that a run that was interrupted anywhere and loaded again ends
/// with the same parameters, bit for bit.
class Trainer {
 public:
  struct Parts {
    std::string path;  ///< the model file
    ResumableCheckpoint& run;
    const ParallelCorpus& corpus;
    GradientWorkers& workers;
    Validator* validator = nullptr;  ///< null: no validation
    ThreadPool& pool;
    Reporter& reporter;
    Log& log;
  };

  /// Throws UsageError where the options do not fit together.
  Trainer(const Parts& parts, const BatchOptions& batch_options, const RunOptions& options,
          const OptimizerSettings& optimizer);

  /// Whether the saved run has reached its end and nothing is left to do. One that is to go on further than before is
  /// opened again.
  bool already_finished();

  enum class Outcome { finished, interrupted };
  /// Returns `interrupted` after a signal, with the state saved. Throws Error where training diverges for good.
  Outcome run(const InterruptGuard& interrupts);

  /// Tries updates without saving, validating or reporting: for measuring. Returns target tokens per second.
  double measure_speed(int updates);

  /// Batches of an epoch.
  std::int64_t batches_per_epoch();

 private:
  using Clock = std::chrono::steady_clock;
  enum class Step { applied, skipped, rolled_back };

  TrainingState& state() { return parts_.run.state; }
  ParameterValues<float>& trained() { return training_parameters(parts_.run); }
  bool smoothing() const { return batch_options_.exponential_smoothing > 0; }
  TrainingProgress progress();
  void find_place_in_epoch();
  void forget_missing_best();
  double learning_rate();
  UpdateStep::Result compute_update();
  Step one_update();
  void count_update(const UpdateStep::Result& result);
  Step handle_divergence(const std::string& what);
  void roll_back(const std::string& why);
  void report_progress(const TrainingProgress& before, const TrainingProgress& now);
  void show_report(const TrainingProgress& now);
  UpdateReport make_report(const TrainingProgress& now);
  void validate();
  std::string best_file(Metric metric) const;
  bool stalled();
  bool save(bool keep);
  void drop_old_kept(std::size_t keep);
  bool save_or_roll_back(bool keep);
  bool finish_if_done();
  void next_epoch_if_done();
  void publish_average();
  void plot();

  Parts parts_;
  BatchOptions batch_options_;
  RunOptions options_;
  Optimizer optimizer_;
  UpdateStep step_;
  EpochBatches batches_;
  std::int64_t prepared_epoch_ = -1;
  std::vector<Shard> shards_;
  TrainingLength after_, save_freq_, valid_freq_;
  std::optional<TrainingLength> disp_freq_;

  Clock::time_point started_;        // when this run began: at construction
  double seconds_before_;            // training time of the runs before this one
  TrainingProgress first_progress_;  // of this run
  CrossEntropySums shown_sums_;      // since the last report
  TrainingProgress shown_progress_;
  double last_norm_ = 0;
  Clock::time_point status_shown_;
};

}  // namespace heed
