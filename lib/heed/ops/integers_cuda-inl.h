// Numbers as integers with a scale, in kernels of GPUs: the rows of a key/value cache and the operands of int8
// products.
#pragma once

#include <cmath>
#include <cstdint>
#include <limits>

#include "heed/tensor/cuda_language.h"
#include "heed/tensor/cuda_packs.h"

namespace heed {

/// The warps of a block that has a group of numbers for each warp, for store_integers(). Warps do not wait for each
/// other.
constexpr int kIntegerWarps = 4;

/// Returns the shape of a launch with a warp for each of `groups` groups of numbers.
inline LaunchShape shape_for_integers(std::int64_t groups) {
  return {static_cast<unsigned>((groups + kIntegerWarps - 1) / kIntegerWarps), 32 * kIntegerWarps};
}
/// Returns the number of the group of this warp.
__device__ inline std::int64_t group_of_warp() {
  return std::int64_t{blockIdx.x} * kIntegerWarps + threadIdx.x / 32;
}

/// Calls body(column) for each pack of N columns of this lane, of n columns.
template <int N, class Body>
__device__ __forceinline__ void for_each_pack_of_lane(std::int64_t n, const Body& body) {
  for (std::int64_t c = std::int64_t{N} * lane_of_warp(); c < n; c += 32 * N) body(c);
}

/// Divides n numbers by a scale and rounds them to the nearest integers, all lanes of a warp together, in packs of N.
/// The scale is max |x| divided by the largest integer of the type, and NaN where a number is not finite: it is
/// returned to each lane, and the integers are 0 then.
template <int N, class Stored>
__device__ float store_integers(const float* from, std::int64_t n, Stored* to) {
  constexpr float kMost = std::numeric_limits<Stored>::max();
  float largest = 0, zero = 0;
  for_each_pack_of_lane<N>(n, [&](std::int64_t c) {
    const Pack<float, N> x = load_pack<N>(from + c);
    HEED_UNROLL
    for (int k = 0; k < N; ++k) {
      const float size = std::fabs(x[k]);
      largest = size > largest ? size : largest;
      zero += x[k] * 0;  // NaN where the number is not finite
    }
  });
  largest = warp_max(largest);
  zero = warp_sum(zero);
  const float inverse = largest > 0 ? kMost / largest : 0.0F;
  for_each_pack_of_lane<N>(n, [&](std::int64_t c) {
    const Pack<float, N> x = load_pack<N>(from + c);
    Pack<Stored, N> out;
    HEED_UNROLL
    for (int k = 0; k < N; ++k) out[k] = zero == 0 ? static_cast<Stored>(std::rint(x[k] * inverse)) : Stored(0);
    store_pack(out, to + c);
  });
  return largest / kMost + zero;
}

}  // namespace heed
