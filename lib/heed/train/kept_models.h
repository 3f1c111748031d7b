#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "heed/base/log.h"
#include "heed/checkpoint/checkpoint.h"
#include "heed/checkpoint/training_state.h"
#include "heed/dist/communicator.h"
#include "heed/train/trainer_options.h"

namespace heed {

/// The models that a training keeps beside its model file because of --keep-last and --average-last. The state of the
/// training says which they are. All ranks call each function together; only rank 0 writes and removes files.
class KeptModels {
 public:
  /// `path` is that of the model file. All arguments must outlive this object, and `state` is that of the training as
  /// it was loaded.
  KeptModels(const std::string& path, TrainingState& state, const RunOptions& options, Communicator& ranks, Log& log)
      : path_(path), state_(state), options_(options), ranks_(ranks), log_(log), first_update_(state.updates) {}

  /// Forgets each kept model whose file is missing. Call it while the loaded state still says whether it is that of a
  /// finished training: the average of such a training took the place of the kept models. In any other state a missing
  /// file changes the average that is to come, and a warning says so.
  void forget_missing();
  /// Saves the model of the last update as a kept one, where the options ask for kept models, and it is not kept yet.
  void add(const Checkpoint& checkpoint);
  /// Notes that the last models are kept because of --keep-last. Without the option, the models stay requested that an
  /// earlier run has kept because of it.
  void request_last();
  /// Removes the models that are not needed any more: all but the requested ones and, unless the average is `made`
  /// already, those that --average-last needs. The log tells of models that are removed before the first update of this
  /// run, and with --verbose also of the others, which newer models or the average replace.
  void remove_old(bool made);
  /// Returns whether a finished training is to be averaged now, because it ran without --average-last, or with another
  /// number of models, and the kept models are there. Says so if there are none.
  bool lack_average() const;
  /// Returns the files of the models that --average-last averages, oldest first.
  std::vector<std::string> files_to_average() const;

 private:
  bool is_first() const { return ranks_.rank() == 0; }
  std::vector<std::int64_t> last(int count) const;

  const std::string& path_;
  TrainingState& state_;
  const RunOptions& options_;
  Communicator& ranks_;
  Log& log_;
  std::int64_t first_update_;  // the number of updates with which this run has begun
};

}  // namespace heed
