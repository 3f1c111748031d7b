#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace heed {

/// A point of the learning curve. The point stands for a number of consecutive updates.
struct LossPoint {
  std::int64_t update = 0;  ///< number of the last update that the point stands for
  double epoch = 0;         ///< epochs of training that were done at the end of `update`
  double loss = 0;          ///< mean negative log-likelihood of a target token, without label smoothing
  std::int64_t tokens = 0;  ///< target tokens in the updates that the point stands for
};

/// The result of one validation.
struct ValidationPoint {
  std::int64_t update = 0;     ///< number of the update before the validation
  double epoch = 0;            ///< epochs of training done before the validation
  std::vector<double> scores;  ///< one score for each metric of TrainingState::metrics
};

/// The best score of one metric in all validations so far.
struct BestScore {
  double score = 0;
  std::int64_t update = -1;  ///< update of the validation with the best score; -1: no validation yet
  std::int64_t stalled = 0;  ///< validations since the best score
};

/// The state of training: all that a resumed training needs to continue exactly where it stopped, apart from arrays.
/// The checkpoint stores the arrays separately: optimiser moments, and, if /parameters holds smoothed or averaged
/// parameters, the parameters before smoothing or averaging. All numbers are finite.
struct TrainingState {
  std::uint64_t seed = 0;

  // The following members describe the progress of training.
  std::int64_t updates = 0;         ///< updates tried, including the skipped updates
  std::int64_t optimizer_step = 0;  ///< updates that changed the parameters, for bias correction and the learning rate
  std::int64_t epoch = 0;           ///< completed epochs
  std::int64_t batch = 0;           ///< batches of the current epoch that are done
  std::int64_t epoch_batches = 0;   ///< all batches of the current epoch; 0: unknown (states of version 0)
  std::int64_t target_tokens = 0;   ///< target tokens that training has read
  std::int64_t sentences = 0;       ///< sentence pairs that training has read
  double seconds = 0;               ///< time spent in training, over all runs
  bool finished = false;            ///< training has reached its goal, or early stopping ended it
  std::string finish_reason;        ///< why training finished, as text for the user

  // The following members count failures during training.
  std::int64_t skipped_updates = 0;    ///< updates skipped because the loss or gradient was not finite
  std::int64_t consecutive_skips = 0;  ///< skipped updates since the last good update or rollback
  std::int64_t rollbacks = 0;          ///< returns to an earlier state; each return halves the learning rate
  // The following members hold what was measured during training.
  std::vector<LossPoint> history;   ///< the learning curve, oldest point first
  std::int64_t history_stride = 1;  ///< number of updates that one point of `history` stands for
  LossPoint open_point;  ///< the incomplete next point of `history`; `loss` is a sum over target tokens in this point
  std::vector<std::string> metrics;          ///< names of the metrics of validation
  std::vector<ValidationPoint> validations;  ///< results of all validations, oldest first
  std::vector<BestScore> best;               ///< one best score for each metric of `metrics`

  /// The numbers of the updates whose weights are kept in files beside the model (--keep-last, --average-last),
  /// ascending.
  std::vector<std::int64_t> kept_updates;

  /// The settings of training, as pairs of name and value: options, and the fingerprint of the training text. A resumed
  /// training compares the settings with its own, and tells the user what has changed.
  std::vector<std::pair<std::string, std::string>> settings;
};

/// Returns the state as bytes for the dataset /training/state: a text archive of Boost.Serialization. Throws Error for
/// a state that read_training_state() would refuse, so that training never writes a file from which training cannot go
/// on.
std::string write_training_state(const TrainingState& state);

/// Reads a state that write_training_state() of this or an earlier version wrote. The bytes may be damaged or forged:
/// every field is checked, and a length above the number of bytes is an error before memory is allocated. Throws Error
/// that names `path` and the field.
TrainingState read_training_state(const std::string& bytes, const std::string& path);

}  // namespace heed
