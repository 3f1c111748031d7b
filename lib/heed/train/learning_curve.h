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

/// Writes a picture (write_plot()) that compares trainings, given with their names: one curve for each, by update, of
/// the cross-entropy of validation, or of training where the training validates neither perplexity nor cross-entropy.
void plot_comparison(const std::vector<std::pair<std::string, const TrainingState*>>& trainings,
                     const std::string& path);

}  // namespace heed
