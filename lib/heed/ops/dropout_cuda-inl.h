#pragma once

#include "heed/ops/dropout_mask.h"
#include "heed/tensor/cuda_language.h"

namespace heed {

/// Returns element i of dropout(x), where x is this element before dropout. An absent mask drops nothing.
template <class T>
__device__ T drop(T x, DropoutMask<T> mask, std::int64_t i) {
  return !mask.kept ? x : mask.kept[i] ? x * mask.scale : T(0);
}

}  // namespace heed
