#pragma once

#include <cmath>

#include "heed/tensor/cuda_language.h"

namespace heed {

/// Returns the largest element of the row of this block, and in `sum` the sum of exp(x - largest); minus infinity and 0
/// where all elements are minus infinity. The block has shared memory for block_sum() of numbers T.
template <class T>
__device__ T largest_of_row(const T* x, std::int64_t columns, T& sum) {
  T largest = static_cast<T>(-INFINITY);
  for_each_of_row(columns, [&](std::int64_t i) { largest = x[i] > largest ? x[i] : largest; });
  largest = block_max(largest, shared_memory<T>());
  sum = 0;
  if (largest == static_cast<T>(-INFINITY)) return largest;
  for_each_of_row(columns, [&](std::int64_t i) { sum += std::exp(x[i] - largest); });
  sum = block_sum(sum, shared_memory<T>());
  return largest;
}

/// Computes the softmax y of the row of this block; zeros where all elements of x are minus infinity. NaN spreads to
/// all elements that are not minus infinity. x and y may be the same array.
template <class T>
__device__ void softmax_row(const T* x, T* y, std::int64_t columns) {
  T sum = 0;
  const T largest = largest_of_row(x, columns, sum), never = static_cast<T>(-INFINITY);
  for_each_of_row(columns, [&](std::int64_t i) { y[i] = x[i] == never ? T(0) : std::exp(x[i] - largest) / sum; });
}

}  // namespace heed
