#pragma once

#include <string>
#include <utility>
#include <vector>

#include "heed/base/log.h"
#include "heed/checkpoint/checkpoint.h"
#include "heed/config/fields.h"

namespace heed {

/// Returns a description of the first difference between the vocabularies and text steps of two checkpoints, such as
/// "the source vocabulary has 120 pieces there, 110 here", or an empty string.
std::string describe_text_difference(const Checkpoint& here, const Checkpoint& there);

/// What describe_difference() compares. `training`: everything that decides how a training goes on. `trained_model`:
/// only what a trained model depends on, which does not include dropout.
enum class Comparison { training, trained_model };

/// Returns a description of the first difference between the configs or text models of two checkpoints, such as
/// "--dim-emb is 128 there, 256 here", or an empty string. In the description, "there" means the checkpoint `there`.
std::string describe_difference(const Checkpoint& here, const Checkpoint& there, Comparison comparison);

/// One setting that decides the result of a training, such as the value of an option. TrainingState::settings stores
/// the settings, so that they can be compared when an interrupted training goes on. A changed `required` setting (the
/// training text, the optimiser) is an error. Any other setting may change, but training then ends with another model
/// than an uninterrupted training would; only a setting `of_text` decides nothing but the training text, whose
/// fingerprint is a required setting. A file of an older heed lacks the settings that came later; it was trained with
/// their defaults, or, if they are of_text, with values that nobody knows.
struct RunSetting {
  std::string name, value;
  bool required = false;
  std::string default_value = kNotSet;
  bool of_text = false;
};

/// Compares a saved training with the present one. Throws Error naming `path` when the configs, the text models or a
/// required setting differ; the message has all settings that differ, because one may be the cause of another. Then
/// stores the present settings in `saved.state`. Returns a description of each other setting that differs, unless it is
/// of_text, such as "--seed was 1 and is now 2": warn_of_changes() warns of these if the training goes on.
std::vector<std::string> check_resumable(const std::string& path, ResumableCheckpoint& saved, const Checkpoint& present,
                                         const std::vector<RunSetting>& settings);

/// Warns that the result will differ because of the changed settings that check_resumable() has returned.
void warn_of_changes(const std::vector<std::string>& changes, Log& log);

/// Forgets the scores of earlier validations, with which later ones must not be compared: `what` has changed. Warns, if
/// there are any.
void forget_validations(TrainingState& state, const std::string& what, Log& log);

/// Completes a rollback: moves what remains valid from `abandoned`, the state that training gives up, into `restored`,
/// the state that was read from the file to which training goes back. This is the seed and the settings, because
/// another run may have written the file; the number of skipped updates, and the number of rollbacks, to which it adds
/// one; the metrics; the scores of the validations up to the restored update, of which this run may have forgotten
/// some; and the best scores, because the files of the best models (--keep-best) still hold these models.
void carry_over_rollback(TrainingState& abandoned, TrainingState& restored);

/// Arranges the parameter arrays of a loaded file as training_parameters() expects them. A file saved during training
/// holds the trained parameters; a file saved after the end of training may hold averaged parameters besides the
/// trained ones. `smoothing` says whether this run has --exponential-smoothing.
void restore_training_form(ResumableCheckpoint& run, bool smoothing);

/// Returns the parameters that the optimiser changes. With exponential smoothing these are the array "trained", and
/// checkpoint.parameters are the moving average of "trained"; without smoothing these are checkpoint.parameters.
ParameterValues<float>& training_parameters(ResumableCheckpoint& run);

/// Converts `batch`, a number of finished batches of an epoch, when the epoch now has `now` batches instead of
/// `before`. The same fraction of the epoch stays finished: batch * now / before, rounded, from 0 to `now`.
std::int64_t scaled_batch(std::int64_t batch, std::int64_t before, std::int64_t now);

/// Returns the arrays to save in a file whose model is an average of checkpoints. The arrays contain the trained (and,
/// with exponential smoothing, the smoothed) parameters, so that restore_training_form() can continue training from the
/// file.
TrainingArrays published_arrays(const ResumableCheckpoint& run);

}  // namespace heed
