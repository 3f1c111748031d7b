#pragma once

#include <chrono>
#include <deque>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "heed/base/signals.h"
#include "heed/checkpoint/checkpoint.h"
#include "heed/train/kept_models.h"
#include "heed/train/reporter.h"
#include "heed/train/resume.h"
#include "heed/train/training_workers.h"
#include "heed/train/validator.h"

namespace heed {

/// Trains from the state in `run` until RunOptions::after is reached. Validates, saves the model, keeps copies
/// (--keep-best, --keep-last) and averages them. Only `run` and the options decide the result: a training that was
/// interrupted anywhere and loaded again ends with the same parameters, bit for bit.
///
/// All ranks of TrainingWorkers train together. They take every decision alike: rank 0's clock tells the time, a signal
/// to one rank is a signal to all, and only rank 0 writes files and reports.
class Trainer {
 public:
  struct Parts {
    std::string path;  ///< path of the model file
    ResumableCheckpoint& run;
    ExampleWindows& windows;
    TrainingWorkers& workers;
    /// Computes the validation scores; null without the option --valid-sets.
    Validator* validator = nullptr;
    ThreadPool& pool;
    Reporter& reporter;
    Log& log;
    /// The model whose parameters the training began with (--pretrained-model); empty without one.
    std::string pretrained_model = {};
    /// The states of other trainings that the picture compares with this one, by their model files (--plot-with).
    std::vector<std::pair<std::string, TrainingState>> compared = {};
  };

  /// RunOptions::early_stopping and keep_best need a validator. A schedule that needs the end of the training needs
  /// another unit than hours in RunOptions::after.
  Trainer(const Parts& parts, const BatchOptions& batch_options, const RunOptions& options,
          const OptimizerSettings& optimizer);

  /// Returns whether the loaded training was saved as finished and nothing is left to do. Reopens a finished training
  /// when the options ask for a longer one.
  bool already_finished();

  enum class Outcome { finished, interrupted };
  /// Trains until RunOptions::after is reached or a signal arrives. Returns `interrupted` after a signal, with the
  /// state saved. A signal also ends a validation early; the run that resumes the training then does this validation.
  /// If the training is finished already, run() only makes the average of --average-last, where it is missing, and
  /// draws the picture of --plot. Throws Error when training diverges and neither skipped updates nor rollbacks help.
  Outcome run(const InterruptGuard& interrupts);

  /// The result of try_updates().
  struct Trial {
    double tokens_per_second = 0;  ///< target tokens per second
    int updates = 0;               ///< how many results are known
    int not_finite = 0;            ///< how many of these updates had a loss or gradient that is not finite
  };
  /// Computes `updates` updates, after one that does not count, without saving, validating or reporting.
  Trial try_updates(int updates);

  /// Returns the number of batches in the present window of the present epoch. Loads the window and sorts its examples
  /// into batches when it is new.
  std::int64_t batches_in_window();

 private:
  using Clock = std::chrono::steady_clock;
  /// How the last of the collected updates ended. `repeated`: an earlier update was skipped, so that the last update
  /// was given up and is computed again.
  enum class Step { applied, skipped, repeated, rolled_back };
  /// Where in the text a training is, and how many updates it has computed.
  struct Place {
    std::int64_t epoch, window, batch, updates;
  };
  /// An update whose result is not known yet.
  struct Submitted {
    Place after = {};
    double epochs = 0;                      // the epochs that are done after the update, with a fraction
    std::int64_t target_tokens_before = 0;  // the target tokens of the training before the update
    std::int64_t sentences = 0, first_line = 0;
    double learning_rate = 0;
  };

  TrainingState& state() { return parts_.run.state; }
  ParameterValues<float>& trained() { return training_parameters(parts_.run); }
  bool smoothing() const { return batch_options_.exponential_smoothing > 0; }
  TrainingProgress progress();
  /// Returns the training time in seconds of all runs until now, by this rank's clock.
  double seconds_now() const;
  void tell_time();
  bool is_first() const { return ranks_.rank() == 0; }
  void find_place_in_epoch();
  void forget_missing_best();
  double learning_rate();
  void submit_update();
  Step collect_updates(std::size_t left);
  void count_update(const Submitted& update, const UpdateStep::Result& result);
  Step handle_divergence(const std::string& what);
  [[noreturn]] void fail(const std::string& what);
  void roll_back(const std::string& why);
  bool report_is_due(const TrainingProgress& before, const TrainingProgress& now) const;
  bool is_due(const TrainingProgress& before, const TrainingProgress& now) const;
  void report_progress(const TrainingProgress& before, const TrainingProgress& now);
  void show_report(const TrainingProgress& now);
  UpdateReport make_report(const TrainingProgress& now);
  bool validate();
  std::string best_file(Metric metric) const;
  bool stalled();
  bool save(bool keep);
  bool save_or_roll_back(bool keep);
  bool finish_if_done();
  bool finish_interrupted();
  bool interrupted();
  void next_window_if_done();
  bool publish_average();
  void plot();
  void try_to_plot();

  Parts parts_;
  Communicator& ranks_;
  BatchOptions batch_options_;
  RunOptions options_;
  Optimizer optimizer_;
  std::unique_ptr<UpdateStep> step_;
  // The window that was loaded last, its batches, and its number: epoch * windows + window.
  const Examples* examples_ = nullptr;
  std::optional<EpochBatches> batches_;
  std::int64_t prepared_ = -1;
  std::vector<Shard> shards_;
  std::deque<Submitted> submitted_;
  TrainingLength after_, save_freq_, valid_freq_;
  std::optional<TrainingLength> disp_freq_;
  KeptModels kept_;

  // The time at which this Trainer was constructed.
  Clock::time_point started_;
  // The training time in seconds of the earlier runs, as saved in the checkpoint, and of all runs until now.
  double seconds_before_, seconds_;
  // The progress (epochs, updates, ...) at the beginning of this run.
  TrainingProgress first_progress_;
  // The sums (loss, number of tokens, ...) over the updates since the last progress report.
  LossSums shown_sums_;
  TrainingProgress shown_progress_;
  // The norm of the gradient of the last update that was applied, and its learning rate.
  double last_norm_ = 0, last_learning_rate_ = 0;
  bool plot_failed_ = false;  // whether the last picture could not be written
  Clock::time_point status_shown_;
  const InterruptGuard* interrupts_ = nullptr;  // of run()
};

}  // namespace heed
