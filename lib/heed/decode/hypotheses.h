#pragma once

#include <cstdint>
#include <vector>

namespace heed {

/// A translation of one sentence as ids of target pieces.
struct Hypothesis {
  /// The ids of the translation's pieces, without </s>.
  std::vector<std::int32_t> ids;
  /// The log-probability of each element of `ids`, followed by the log-probability of </s> if the hypothesis ended with
  /// </s>.
  std::vector<float> log_probabilities;
  /// The sum of log_probabilities.
  double sum = 0;
  /// The score by which hypotheses are sorted: `sum` divided by the length penalty (SearchOptions::final_score).
  double score = 0;
};

/// Returns whether a translation must not contain `id`: `<pad>`, `<unk>` and `<s>` are forbidden.
bool is_forbidden(std::int32_t id);

/// Sorts hypotheses by falling score and keeps the first `count`. Hypotheses with equal scores keep their order.
void keep_best(std::vector<Hypothesis>& hypotheses, int count);

/// Throws the Error that tells the user that the model computes NaN scores.
[[noreturn]] void fail_not_a_number();

}  // namespace heed
