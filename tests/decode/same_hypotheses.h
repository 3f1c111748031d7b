#pragma once

#include <doctest/doctest.h>

#include <vector>

#include "heed/decode/search.h"

namespace heed {

/// Checks that two searches found the same hypotheses for a sentence, with the same bits in all scores.
inline void check_same(const std::vector<Hypothesis>& x, const std::vector<Hypothesis>& y) {
  REQUIRE(x.size() == y.size());
  for (std::size_t i = 0; i < x.size(); ++i) {
    CHECK(x[i].ids == y[i].ids);
    CHECK(x[i].log_probabilities == y[i].log_probabilities);
    CHECK(x[i].sum == y[i].sum);
    CHECK(x[i].score == y[i].score);
  }
}

}  // namespace heed
