#pragma once

#include <vector>

#include "heed/decode/parallel_model.h"
#include "heed/decode/search.h"

namespace heed {

/// Translates a batch of sources that end with `</s>` with a model that predicts all positions at once, by mask-predict
/// (Ghazvininejad et al. 2019, section 3). Returns for each source at most options.results() hypotheses, best first,
/// which do not depend on the other sources of the batch.
///
/// For each of the options.length_candidates likeliest lengths, the first iteration predicts all N tokens, each on its
/// own. Iteration t of T, counted from 0, masks the floor(N (T - t) / T) tokens with the lowest log-probability, of
/// equally likely ones the first, and predicts them anew; the others keep their log-probability. Of two equal tokens
/// side by side, the less likely one is masked before all others: they were often predicted at once, without knowing of
/// each other. The paper does not do this. The log-probability of a hypothesis is the sum of those of its tokens and of
/// its length, which Hypothesis reports as that of `</s>`.
///
/// If the model predicts the end, all targets have the same positions. Each iteration cuts a target at its first
/// `</s>`: the tokens after it are masked again and count for nothing. The log-probability of `</s>` is then that of
/// the prediction. A target without `</s>` is cut at the greatest length and has no such log-probability.
///
/// Throws Error when the model computes NaN scores.
std::vector<std::vector<Hypothesis>> mask_predict(ParallelModel& model, const PackedIds& source,
                                                  const SearchOptions& options);

}  // namespace heed
