#pragma once

#include "heed/decode/search.h"

namespace heed {

/// Beam search; with beam size 1 greedy. In each step the 2K best continuations of a sentence's K hypotheses are
/// ranked; a `</s>` among the first K ends a hypothesis, and the best K others go on. A sentence is done when K
/// hypotheses have ended or the length limit is reached.
std::vector<std::vector<Hypothesis>> beam_search(StepModel& model, const PackedIds& source,
                                                 const SearchOptions& options);

/// Draws options.results() translations of each source. The numbers drawn depend on the seed and the source's ids.
std::vector<std::vector<Hypothesis>> sample(StepModel& model, const PackedIds& source, const SearchOptions& options);

/// Ids no search produces.
bool is_forbidden(std::int32_t id);

/// Best first; of equal scores the one found first.
void sort_hypotheses(std::vector<Hypothesis>& hypotheses, const SearchOptions& options);

}  // namespace heed
