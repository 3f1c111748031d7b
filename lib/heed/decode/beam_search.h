#pragma once

#include "heed/decode/search.h"

namespace heed {

/// Beam search; with beam size 1 greedy. In each step the 2K best continuations of a sentence's K hypotheses are
/// ranked; a `</s>` among the first K ends a hypothesis, and the best K others go on. A sentence is done when K
/// hypotheses have ended or the length limit is reached.
std::vector<std::vector<Hypothesis>> beam_search(StepModel& model, const PackedIds& source,
                                                 const SearchOptions& options);

}  // namespace heed
