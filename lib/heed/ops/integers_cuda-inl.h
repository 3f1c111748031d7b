// Numbers as integers with a scale, in kernels of GPUs: the rows of a key/value cache and the operands of int8
// products.
#pragma once

#include <cmath>
#include <cstdint>
#include <limits>

#include "heed/ops/row_team_cuda-inl.h"
#include "heed/tensor/cuda_language.h"
#include "heed/tensor/cuda_packs.h"

namespace heed {

/// The warp that store_integers() takes for a group of numbers, in packs of N (see shape_for_warps()).
template <int N>
using IntegerTeam = RowTeam<N, 0, true>;

/// Divides n numbers by a scale and rounds them to the nearest integers, all lanes of a warp together, in packs of N.
/// The scale is max |x| divided by the largest integer of the type, and NaN where a number is not finite: it is
/// returned to each lane, and the integers are 0 then.
template <int N, class Stored>
__device__ float store_integers(const float* from, std::int64_t n, Stored* to) {
  constexpr float kMost = std::numeric_limits<Stored>::max();
  float largest = 0, zero = 0;
  IntegerTeam<N>::for_each_pack(n, [&](int, int c) {
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
  IntegerTeam<N>::for_each_pack(n, [&](int, int c) {
    const Pack<float, N> x = load_pack<N>(from + c);
    Pack<Stored, N> out;
    HEED_UNROLL
    for (int k = 0; k < N; ++k) out[k] = zero == 0 ? static_cast<Stored>(std::rint(x[k] * inverse)) : Stored(0);
    store_pack(out, to + c);
  });
  return largest / kMost + zero;
}

}  // namespace heed
