#pragma once

#include "heed/decode/search.h"

namespace heed {

/// Finds the options.results() translations of one source that have the highest scores of all that the model can
/// produce within the length limits: an exact search, by branch and bound (compare Stahlberg and Byrne 2019). Of
/// translations with equal scores, the shorter one comes first, then the one whose first different id is lower.
///
/// A beam search gives the first bound. A prefix of a translation is continued if its sum of log-probabilities, to
/// which every further token adds at most 0, still allows a score above the bound at the greatest length. Throws
/// SearchTooLong when the source would need more than options.max_expansions prefixes. `source` must have one
/// sequence.
std::vector<Hypothesis> exhaustive_search(StepModel& model, const PackedIds& source, const SearchOptions& options);

}  // namespace heed
