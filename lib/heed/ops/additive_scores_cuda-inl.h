// The scores of additive attention, sum over c of v_c tanh(q_c + k_c), and their backward pass, for the kernels of
// GPUs. Each tanh is computed again where it is needed.
#pragma once

#include <cmath>

#include "heed/tensor/cuda_language.h"

namespace heed {

/// Returns the score of a query and a key of `width` columns to all threads of a warp, which share the columns.
template <class T>
__device__ T additive_score(const T* query, const T* key, const T* scorer, std::int64_t width) {
  T sum = 0;
  for (std::int64_t c = threadIdx.x % 32; c < width; c += 32) sum += scorer[c] * std::tanh(query[c] + key[c]);
  return warp_sum(sum);
}

/// Two sums over pairs of a query and a key, in one column, with the gradients g of the pairs' scores and t = tanh(q +
/// k).
template <class T>
struct TangentSums {
  T slope = 0;    ///< of g (1 - t^2); times v_c, this is the gradient of q_c or k_c
  T tangent = 0;  ///< of g t, the gradient of v_c

  __device__ void add(T g, T sum) {
    const T t = std::tanh(sum);
    slope += g * (T(1) - t * t);
    tangent += g * t;
  }
};

/// Returns the sums over the pairs of x, an element of a query or of a key, and `count` elements of the other side in
/// the same column, which begin `stride` elements apart; their gradients begin `g_stride` elements apart.
template <class T>
__device__ TangentSums<T> tangent_sums(T x, std::int64_t count, const T* others, std::int64_t stride, const T* g,
                                       std::int64_t g_stride) {
  TangentSums<T> sums;
  for (std::int64_t j = 0; j < count; ++j) sums.add(g[j * g_stride], x + others[j * stride]);
  return sums;
}

}  // namespace heed
