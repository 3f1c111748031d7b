#pragma once

#include "heed/decode/search.h"

namespace heed {

/// Draws options.results() translations of each source. The numbers drawn depend on the seed and the source's ids.
std::vector<std::vector<Hypothesis>> sample(StepModel& model, const PackedIds& source, const SearchOptions& options);

}  // namespace heed
