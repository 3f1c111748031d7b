#pragma once

#include "heed/decode/search.h"

namespace heed {

/// Draws options.results() translations of each source from the model's distribution. The random numbers depend only on
/// the seed and the ids of the source.
std::vector<std::vector<Hypothesis>> sample(StepModel& model, const PackedIds& source, const SearchOptions& options);

}  // namespace heed
