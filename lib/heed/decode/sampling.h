#pragma once

#include "heed/decode/search.h"

namespace heed {

/// Draws options.results() random translations of each source sentence from the model's distribution. The random
/// numbers depend only on the seed and on the ids of the source sentence.
std::vector<std::vector<Hypothesis>> sample(StepModel& model, const PackedIds& source, const SearchOptions& options);

}  // namespace heed
