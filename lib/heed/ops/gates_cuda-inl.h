#pragma once

#include <cmath>

#include "heed/tensor/cuda_language.h"

namespace heed {

/// Returns the sigmoid function 1 / (1 + e^-x), and NaN for NaN. Where e^-x overflows, the result is 0.
template <class T>
__device__ T sigmoid(T x) {
  return T(1) / (T(1) + std::exp(-x));
}

}  // namespace heed
