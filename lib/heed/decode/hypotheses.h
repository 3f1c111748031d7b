#pragma once

#include <cstdint>
#include <vector>

namespace heed {

/// A translation in ids.
struct Hypothesis {
  std::vector<std::int32_t> ids;         ///< without </s>
  std::vector<float> log_probabilities;  ///< of each id, and of </s> where it ended by itself
  double sum = 0;                        ///< of the log-probabilities
  double score = 0;                      ///< normalised
};

/// Returns whether no search may produce an id: `<pad>`, `<unk>` and `<s>`.
bool is_forbidden(std::int32_t id);

/// Sorts hypotheses by score, best first, of equal scores the one found first, and keeps the best `count` of them.
void keep_best(std::vector<Hypothesis>& hypotheses, int count);

/// Throws the Error of a model whose scores are NaN.
[[noreturn]] void fail_not_a_number();

}  // namespace heed
