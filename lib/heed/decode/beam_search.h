#pragma once

#include "heed/decode/search.h"

namespace heed {

/// Translates each sentence by beam search with beam size K; K = 1 is greedy search. In each step the search ranks the
/// 2K best continuations of a sentence's K hypotheses. A `</s>` among the best K continuations finishes a hypothesis;
/// the best K continuations without `</s>` form the next beam. The search of a sentence ends when K hypotheses are
/// finished or the length limit is reached.
std::vector<std::vector<Hypothesis>> beam_search(StepModel& model, const PackedIds& source,
                                                 const SearchOptions& options);

}  // namespace heed
