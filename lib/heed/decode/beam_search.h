#pragma once

#include "heed/decode/search.h"

namespace heed {

/// Translates each sentence by beam search with beam size K; K = 1 is greedy search. In each step the search ranks the
/// 2K best continuations of a sentence's K hypotheses. A `</s>` among the best K continuations finishes a hypothesis;
/// the best K continuations without `</s>` form the next beam. The search of a sentence ends when K hypotheses are
/// finished or the length limit is reached. If rules forbid every continuation before a hypothesis of the sentence has
/// finished, the hypotheses so far are the result, as if they had reached the limit.
///
/// With G = options.beam_groups > 1, diverse beam search (Vijayakumar et al. 2018, with Hamming diversity): the beam
/// consists of G groups of K / G hypotheses, each of which is searched as above, one group after the other in each
/// step. A continuation by a token ranks lower by options.diversity_strength for each hypothesis of an earlier group
/// that goes on by the same token in this step. The scores of hypotheses do not change. A hypothesis that several
/// groups have found is returned once.
std::vector<std::vector<Hypothesis>> beam_search(StepModel& model, const PackedIds& source,
                                                 const SearchOptions& options);

}  // namespace heed
