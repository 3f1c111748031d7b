#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace heed {

/// A stretch of training: the mean negative log-likelihood of a target token, without label smoothing.
struct LossPoint {
  std::int64_t update = 0;  ///< the last update of the stretch
  double epoch = 0;         ///< epochs done by then
  double loss = 0;
  std::int64_t tokens = 0;  ///< target tokens of the stretch
};

/// What one validation found.
struct ValidationPoint {
  std::int64_t update = 0;
  double epoch = 0;
  std::vector<double> scores;  ///< one for each of TrainingState::metrics
};

/// The best score of one metric so far.
struct BestScore {
  double score = 0;
  std::int64_t update = -1;  ///< of the validation; -1: none yet
  std::int64_t stalled = 0;  ///< validations since then
};

/// Everything apart from arrays that training needs to go on exactly where it stopped. Plain data; all numbers finite.
/// The arrays beside it (optimiser moments, raw parameters where /parameters holds smoothed or averaged ones) are named
/// sets of parameter values.
struct TrainingState {
  std::uint64_t seed = 0;

  // Where we are.
  std::int64_t updates = 0;         ///< updates tried; those skipped count
  std::int64_t optimizer_step = 0;  ///< updates that changed the parameters: bias correction and schedule count these
  std::int64_t epoch = 0;           ///< epochs completed
  std::int64_t batch = 0;           ///< batches of the current epoch done
  std::int64_t epoch_batches = 0;   ///< batches of the current epoch in all; 0: not known (files before version 1)
  std::int64_t target_tokens = 0;   ///< trained on so far
  std::int64_t sentences = 0;
  double seconds = 0;     ///< spent training, over all runs
  bool finished = false;  ///< the goal was reached, or early stopping ended it
  std::string finish_reason;

  // What went wrong.
  std::int64_t skipped_updates = 0;    ///< for a non-finite loss or gradient, in all
  std::int64_t consecutive_skips = 0;  ///< without a good update between
  std::int64_t rollbacks = 0;          ///< each halves the learning rate
  // What was measured.
  std::vector<LossPoint> history;
  std::int64_t history_stride = 1;  ///< updates a point of history stands for
  LossPoint open_point;             ///< the stretch under way; `loss` is a sum over tokens here
  std::vector<std::string> metrics;
  std::vector<ValidationPoint> validations;
  std::vector<BestScore> best;  ///< one for each of metrics

  /// Updates at which weights were kept beside the model (--keep-last, --average-last), oldest first.
  std::vector<std::int64_t> kept_updates;

  /// What a resumed run must find unchanged or say that it changed: option or fingerprint, and value as text.
  std::vector<std::pair<std::string, std::string>> settings;
};

/// The bytes of the dataset /training/state: a Boost.Serialization text archive. Throws Error for a state that
/// read_training_state would refuse, so that no file is written from which training cannot go on.
std::string write_training_state(const TrainingState& state);

/// Reads what write_training_state of this or an earlier version wrote. The bytes may be damaged or forged: every field
/// is checked, and a length larger than the number of bytes takes no memory. Throws Error that names `path` and the
/// field.
TrainingState read_training_state(const std::string& bytes, const std::string& path);

}  // namespace heed
