// Numbers as integers with a scale, in kernels of GPUs: the rows of a key/value cache and the operands of int8
// products.
#pragma once

#include <cmath>
#include <cstdint>
#include <limits>

#include "heed/tensor/cuda_language.h"

namespace heed {

/// Divides n numbers by a scale and rounds them to the nearest integers, all threads of the block together. The scale
/// is max |x| divided by the largest integer of the type, and NaN where a number is not finite: it is returned to each
/// thread, and the integers are 0 then. Uses shared memory as block_sum() does, for a float.
template <class Stored>
__device__ float store_integers(const float* from, std::int64_t n, Stored* to) {
  constexpr float kMost = std::numeric_limits<Stored>::max();
  float largest = 0, zero = 0;
  for (std::int64_t i = threadIdx.x; i < n; i += blockDim.x) {
    const float size = std::fabs(from[i]);
    largest = size > largest ? size : largest;
    zero += from[i] * 0;  // NaN where the number is not finite
  }
  largest = block_max(largest, shared_memory<float>());
  zero = block_sum(zero, shared_memory<float>());
  const float inverse = largest > 0 ? kMost / largest : 0.0F;
  for (std::int64_t i = threadIdx.x; i < n; i += blockDim.x)
    to[i] = zero == 0 ? static_cast<Stored>(std::rint(from[i] * inverse)) : Stored(0);
  return largest / kMost + zero;
}

}  // namespace heed
