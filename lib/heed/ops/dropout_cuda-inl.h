#pragma once

#include "heed/ops/dropout_mask.h"
#include "heed/ops/row_team_cuda-inl.h"
#include "heed/tensor/cuda_language.h"

namespace heed {

/// Returns element i of dropout(x), where x is this element before dropout. An absent mask drops nothing.
template <class T>
__device__ T drop(T x, DropoutMask<T> mask, std::int64_t i) {
  return !mask.kept ? x : mask.kept[i] ? x * mask.scale : T(0);
}

/// The row of a dropout mask, as a thread of a team reads it.
template <class Team>
using MaskRow = TeamRow<std::uint8_t, Team>;

/// Returns the address of a row of the mask, or null for an absent mask.
template <class T>
__device__ const std::uint8_t* row_of_mask(DropoutMask<T> mask, std::int64_t begin) {
  return mask.kept ? mask.kept + begin : nullptr;
}

/// Returns dropout(x) of a pack of a row, whose mask is `kept`.
template <class T, class Team>
__device__ __forceinline__ Pack<T, Team::kColumns> drop_pack(Pack<T, Team::kColumns> x, DropoutMask<T> mask,
                                                             const MaskRow<Team>& kept, int j, int c) {
  if (!mask.kept) return x;
  const Pack<std::uint8_t, Team::kColumns> is_kept = kept.at(j, c);
  HEED_UNROLL
  for (int k = 0; k < Team::kColumns; ++k) x[k] = is_kept[k] ? x[k] * mask.scale : T(0);
  return x;
}

}  // namespace heed
