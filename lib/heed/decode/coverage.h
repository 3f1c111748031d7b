#pragma once

#include <vector>

#include "heed/decode/translator.h"

namespace heed {

/// Adds GNMT's coverage penalty (Wu et al. 2016, equation 14) to the scores of the hypotheses, and sorts them anew:
///   options.coverage_penalty * sum over source tokens i of log(min(1, sum over target tokens j of a_ij))
/// where a_ij is the cross-attention of the first model's last layer, averaged over heads. `</s>` is no source token
/// here, and a target token if the hypothesis ends with it. Keeps the best options.results() hypotheses.
///
/// `source` has the sources with `</s>`, and `hypotheses` the hypotheses of each. The model must have cross-attention.
void rank_by_coverage(Translator& translator, const PackedIds& source, const SearchOptions& options,
                      std::vector<std::vector<Hypothesis>>& hypotheses);

}  // namespace heed
