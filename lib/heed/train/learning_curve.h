#pragma once

#include <string>

#include "heed/checkpoint/training_state.h"

namespace heed {

/// Adds an update to the history of losses: sum of the tokens' negative log-likelihood. The history keeps at most 1024
/// points, each the mean over equally many updates, which double when it is full.
void add_to_history(TrainingState& state, double negative_log_likelihood, std::int64_t tokens, double epoch);

/// Draws training and validation perplexity and the scores as an SVG file.
void plot_learning_curve(const TrainingState& state, const std::string& title, const std::string& path);

}  // namespace heed
