#pragma once

#include <cstdint>
#include <vector>

namespace heed {

/// A translation of one sentence as ids of target pieces.
struct Hypothesis {
  std::vector<std::int32_t> ids;         ///< without </s>
  std::vector<float> log_probabilities;  ///< one for each id, and one for </s> if the hypothesis ended with </s>
  double sum = 0;                        ///< sum of log_probabilities
  double score = 0;                      ///< `sum` divided by the length penalty (SearchOptions::final_score)
};

/// Returns whether a translation must not contain `id`: `<pad>`, `<unk>` and `<s>` are forbidden.
bool is_forbidden(std::int32_t id);

/// Sorts hypotheses by falling score and keeps the first `count`. Hypotheses with equal scores keep their order.
void keep_best(std::vector<Hypothesis>& hypotheses, int count);

/// Throws the Error for a model that computes NaN scores.
[[noreturn]] void fail_not_a_number();

}  // namespace heed
