#pragma once

#include <string>
#include <utility>
#include <vector>

#include "heed/base/log.h"
#include "heed/checkpoint/checkpoint.h"

namespace heed {

/// The first thing in which two checkpoints' configs or text models differ ("--dim-emb is 128 there, 256 here"), or
/// nothing. `there` is the second one.
std::string describe_difference(const Checkpoint& here, const Checkpoint& there);

/// What an interrupted run must find again, as TrainingState::settings holds it. `required` ones are part of what has
/// been learnt (the training text, the optimiser); the others may change, but then the result is another one.
struct RunSetting {
  std::string name, value;
  bool required = false;
};

/// Compares a saved run with the present one. Throws Error naming `path` where config, text models or a required
/// setting differ; warns of each other setting that differs. Then stores the present settings in the state.
void check_resumable(const std::string& path, ResumableCheckpoint& saved, const Checkpoint& present,
                     const std::vector<RunSetting>& settings, Log& log);

/// Takes over into `restored`, the state of the file that training goes back to, what stays true of the abandoned
/// one: seed and settings, which are those of this run and not of the run that wrote the file; skipped updates, and
/// one rollback more; the metrics, and the best scores, because the files of the best models (--keep-best) hold them.
void keep_after_rollback(TrainingState& abandoned, TrainingState& restored);

/// Brings loaded arrays into the form in which training uses them, whatever form they were saved in (see
/// training_parameters): a finished run's file holds averaged parameters beside the trained ones.
void restore_training_form(ResumableCheckpoint& run, bool smoothing);

/// The parameters that the optimiser changes. With exponential smoothing they are the array "trained", and
/// checkpoint.parameters are their moving average; else they are checkpoint.parameters.
ParameterValues<float>& training_parameters(ResumableCheckpoint& run);

/// Converts a number of finished batches after the number of batches in an epoch has changed from `before` to `now`, so
/// that the same share of the epoch is done: batch * now / before, rounded, from 0 to `now`.
std::int64_t scaled_batch(std::int64_t batch, std::int64_t before, std::int64_t now);

/// The arrays to save beside other parameters than those in `run`: restore_training_form finds everything in them.
TrainingArrays published_arrays(const ResumableCheckpoint& run);

}  // namespace heed
