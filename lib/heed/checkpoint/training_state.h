#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace heed {

/// A point of the learning curve. Each point summarises a number of consecutive updates.
struct LossPoint {
  std::int64_t update = 0;  ///< number of the last of the updates that the point summarises
  double epoch = 0;         ///< epochs of training that were completed, with a fraction, at the end of update `update`
  double loss = 0;          ///< mean negative log-likelihood of a target token, without label smoothing
  std::int64_t tokens = 0;  ///< number of target tokens in the updates that the point summarises
};

/// The result of one validation.
struct ValidationPoint {
  std::int64_t update = 0;     ///< number of updates that training had tried before the validation
  double epoch = 0;            ///< epochs of training, with a fraction, that were done before the validation
  std::vector<double> scores;  ///< one score for each metric of TrainingState::metrics
};

/// The best score of one metric in all validations so far.
struct BestScore {
  double score = 0;
  std::int64_t update = -1;  ///< `ValidationPoint::update` of the validation with the best score; -1: no best score
  std::int64_t stalled = 0;  ///< number of validations since the validation with the best score
};

/// The state of training: all that a resumed training needs to continue exactly where the training stopped, apart from
/// large arrays. The checkpoint stores the arrays separately: optimiser moments, and, if the HDF5 group /parameters
/// holds smoothed or averaged parameters, the parameters before smoothing or averaging. All numbers are finite.
struct TrainingState {
  std::uint64_t seed = 0;

  // The following members describe the progress of training.
  std::int64_t updates = 0;  ///< number of updates that training has tried; skipped updates count, too
  /// Number of updates that changed the parameters. The bias correction and the learning rate depend on this number.
  std::int64_t optimizer_step = 0;
  std::int64_t epoch = 0;   ///< number of completed epochs
  std::int64_t window = 0;  ///< number of windows of the current epoch that are done (see ExampleWindows)
  std::int64_t batch = 0;   ///< number of batches of the current window that are done
  /// Number of all batches of the current window; 0 if unknown, because an old version of heed, which did not store
  /// this number, wrote the state.
  std::int64_t window_batches = 0;
  std::int64_t target_tokens = 0;  ///< number of target tokens that training has read
  std::int64_t sentences = 0;      ///< number of sentence pairs that training has read
  double seconds = 0;              ///< seconds spent in training, over all runs of the program
  bool finished = false;           ///< whether training has reached its goal, or early stopping has ended training
  std::string finish_reason;       ///< why training finished, as text for the user

  // The following members count failures during training.
  std::int64_t skipped_updates = 0;    ///< number of updates skipped because the loss or gradient was not finite
  std::int64_t consecutive_skips = 0;  ///< number of skipped updates since the last successful update or rollback
  std::int64_t rollbacks = 0;          ///< number of returns to an earlier state; each return halves the learning rate
  // The following members hold losses and scores that were measured during training.
  std::vector<LossPoint> history;   ///< the learning curve, oldest point first
  std::int64_t history_stride = 1;  ///< number of updates that one point of `history` summarises
  /// The next point of `history`, which is not complete yet: `loss` is the sum over the target tokens so far, not the
  /// mean.
  LossPoint open_point;
  std::vector<std::string> metrics;          ///< names of the metrics that validation computes
  std::vector<ValidationPoint> validations;  ///< results of all validations, oldest first
  std::vector<BestScore> best;               ///< the best score of each metric in `metrics`

  /// The numbers of the updates after which the weights were saved in files beside the model file and kept
  /// (--keep-last, --average-last), ascending.
  std::vector<std::int64_t> kept_updates;
  /// Those of kept_updates that --keep-last keeps, ascending. The others are kept only until the average of
  /// --average-last is made. All, if an old version of heed, which did not tell them apart, wrote the state.
  std::vector<std::int64_t> requested_updates;
  /// The number of kept models whose average is the model of the file (--average-last); 0 if the model is no average,
  /// or if an old version of heed, which did not store this number, wrote the state.
  std::int64_t averaged_models = 0;
  /// Whether a validation was due after the last update, and a signal ended it early.
  bool validation_due = false;

  /// The settings of training, as pairs of name and value: options, and the fingerprint (hash) of the training text. A
  /// resumed training compares these settings with the settings of the new run, and tells the user what has changed.
  std::vector<std::pair<std::string, std::string>> settings;
};

/// Returns the state of training as bytes for the HDF5 dataset /training/state: a text archive of Boost.Serialization.
/// Throws Error for a state that read_training_state() would refuse, so that training never writes a file from which
/// training cannot be resumed.
std::string write_training_state(const TrainingState& state);

/// Reads a state of training that write_training_state() of this or an earlier version wrote. The bytes may be damaged
/// or forged: every field is checked, and a length above the number of bytes is an error before memory is allocated.
/// Throws Error that names `path` and the field.
TrainingState read_training_state(const std::string& bytes, const std::string& path);

}  // namespace heed
