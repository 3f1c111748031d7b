#pragma once

#include <vector>

#include "heed/decode/search.h"

namespace heed {

/// Gives each source of a batch its likeliest labels, with a model that classifies (model/image_classifier.h) or an
/// ensemble of such models. Returns for each source as many hypotheses as options.results() asks for, or as there are
/// classes, best first; of equally likely classes the first comes first. A hypothesis has one id, that of the label in
/// the target vocabulary, and its log-probability as score. Throws Error when the model computes NaN scores.
std::vector<std::vector<Hypothesis>> classify(StepModel& model, const PackedIds& source, const SearchOptions& options);

}  // namespace heed
