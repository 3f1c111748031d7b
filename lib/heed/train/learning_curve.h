#pragma once

#include <string>
#include <utility>
#include <vector>

#include "heed/checkpoint/training_state.h"

namespace heed {

/// Adds the update with the number `update` (from 1) and `tokens` target tokens to the loss history in `state`. After
/// it, `epoch` epochs are done. `negative_log_likelihood` is the sum over these tokens, in nats. The history keeps at
/// most 1024 points. Each point is the mean loss of the same number of updates (`state.history_stride`); when the
/// history is full, neighbouring points are joined in pairs and the stride doubles.
void add_to_history(TrainingState& state, std::int64_t update, double epoch, double negative_log_likelihood,
                    std::int64_t tokens);

/// Writes a picture (write_plot()) that shows, by update, the cross-entropy of training and validation on the left
/// axis, and the other metrics of the validation, such as BLEU, on the right axis.
void plot_learning_curve(const TrainingState& state, const std::string& title, const std::string& path);

/// Returns the states of the trainings of these models, with the model files. Throws Error if a file cannot be read or
/// holds no state of a training.
std::vector<std::pair<std::string, TrainingState>> load_compared_trainings(const std::vector<std::string>& models);

/// Returns the names of trainings in a picture that compares them: the names of the model files without folder and
/// extension. Equal names have as many folders before them as tell them apart: "a/m.h5" and "b/m.h5" give "a/m" and
/// "b/m".
std::vector<std::string> names_in_plot(const std::vector<std::string>& models);

/// Writes a picture (write_plot()) that compares trainings, given with their model files: one curve for each, by
/// update, of the cross-entropy of validation, or of training where the training validates neither perplexity nor
/// cross-entropy. names_in_plot() names the curves.
void plot_comparison(const std::vector<std::pair<std::string, const TrainingState*>>& trainings,
                     const std::string& path);

}  // namespace heed
