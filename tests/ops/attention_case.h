#pragma once

#include <doctest/doctest.h>

#include <cmath>
#include <cstdint>
#include <vector>

#include "heed/tensor/tensor.h"

namespace heed {

using Offsets = std::vector<std::int32_t>;

/// Returns the offsets of sequences with these lengths.
inline Offsets ends(const std::vector<std::int32_t>& lengths) {
  Offsets offsets{0};
  for (const std::int32_t length : lengths) offsets.push_back(offsets.back() + length);
  return offsets;
}

/// The expected result of an attention: the output, and the attention weights in the order of
/// attention_weights_offset().
struct ExpectedAttention {
  std::vector<double> out, weights;
};

/// Returns the largest difference between a tensor and the numbers that are expected of it.
template <class T>
double worst_difference(Tensor<T> actual, const std::vector<double>& expected) {
  REQUIRE(static_cast<std::size_t>(actual.size()) == expected.size());
  double worst = 0;
  for (std::size_t i = 0; i < expected.size(); ++i) {
    const double difference = std::abs(double(actual.data()[i]) - expected[i]);
    if (!(difference <= worst)) worst = difference;
  }
  return worst;
}

}  // namespace heed
