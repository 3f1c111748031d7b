#include <algorithm>
#include <numeric>

#include "heed/ops/additive_scores.h"

// Highway, a library of SIMD vectors, compiles the kernels below once for each instruction set: its header
// <hwy/foreach_target.h> includes this file (HWY_TARGET_INCLUDE) again for each of them. At run time a kernel is called
// in the version for instruction_set(), the set that heed uses on this CPU. The code under HWY_ONCE is compiled only
// once.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "heed/ops/additive_scores_cpu.cpp"
#include <hwy/foreach_target.h>  // IWYU pragma: keep
#include <hwy/highway.h>

#include "heed/ops/additive_scores-inl.h"

HWY_BEFORE_NAMESPACE();
namespace heed::HWY_NAMESPACE {

/// Computes the scores y of all sequences. `scratch` is memory that score_scratch() returned.
template <class T>
void score_sequences(T* scratch, const T* query, const T* key, const T* scorer, ScoreSizes n, T* y) {
  const std::int64_t depth = padded_depth<T>(n.width), wide = scratch_stride<T>(n.width);
  const std::int64_t stride = scratch_stride<T>(n.keys);
  T *zeros = scratch, *factors = zeros + wide, *of_query = factors + wide, *row = of_query + 2 * wide;
  T* of_keys = row + stride;
  PaddedRow<T> padded{of_query, of_query + wide, true};
  TransposedKeys<T> keys{of_keys, of_keys + wide * stride, stride};
  std::fill(zeros, zeros + wide, T(0));
  std::fill(factors, factors + wide, T(0));
  for (std::int64_t c = 0; c < n.width; ++c) factors[c] = -2 * scorer[c];
  const T sum = std::accumulate(scorer, scorer + n.width, T(0));
  for (std::int64_t b = 0; b < n.sequences; ++b) {
    keys.set(key + b * n.keys * n.width, n.width, n.keys, n.width, zeros);
    for (std::int64_t i = 0; i < n.queries; ++i) {
      padded.set(query + (b * n.queries + i) * n.width, n.width, depth);
      score_query(padded, keys, static_cast<const T*>(factors), depth, n.keys, row);
      T* const out = y + (b * n.queries + i) * n.keys;
      for (std::int64_t j = 0; j < n.keys; ++j) out[j] = row[j] + sum;
    }
  }
}

/// Adds to the gradients of query, key and scorer, of which each may be null. `scratch` is memory that score_scratch()
/// returned.
template <class T>
void score_sequences_backward(T* scratch, const T* query, const T* key, const T* scorer, ScoreSizes n, const T* dy,
                              T* dquery, T* dkey, T* dscorer) {
  const std::int64_t depth = padded_depth<T>(n.width), wide = scratch_stride<T>(n.width);
  const std::int64_t stride = scratch_stride<T>(n.keys);
  T *zeros = scratch, *dq = zeros + wide, *ds = dq + wide, *of_query = ds + wide, *g = of_query + 2 * wide;
  T* of_keys = g + stride;
  PaddedRow<T> padded{of_query, of_query + wide, true};
  KeyRows<T> keys{of_keys, of_keys + wide * stride, of_keys + 2 * wide * stride, wide};
  std::fill(zeros, zeros + wide, T(0));
  std::fill(ds, ds + depth, T(0));
  T sum = 0;
  for (std::int64_t b = 0; b < n.sequences; ++b) {
    keys.set(key + b * n.keys * n.width, n.width, n.keys, n.width, zeros);
    for (std::int64_t i = 0; i < n.queries; ++i) {
      const std::int64_t row = b * n.queries + i;
      std::copy_n(dy + row * n.keys, n.keys, g);
      std::fill(g + n.keys, g + (n.keys + 3) / 4 * 4, T(0));
      sum = std::accumulate(g, g + n.keys, sum);
      padded.set(query + row * n.width, n.width, depth);
      backward_query(static_cast<const T*>(g), padded, keys, n.keys, depth, dq, ds);
      for (std::int64_t c = 0; dquery && c < n.width; ++c) dquery[row * n.width + c] += 4 * scorer[c] * dq[c];
    }
    for (std::int64_t j = 0; dkey && j < n.keys; ++j)
      for (std::int64_t c = 0; c < n.width; ++c)
        dkey[(b * n.keys + j) * n.width + c] += 4 * scorer[c] * keys.gradient[j * wide + c];
  }
  for (std::int64_t c = 0; dscorer && c < n.width; ++c) dscorer[c] += sum - 2 * ds[c];
}

HEED_INSTANTIATE_SIMD(score_sequences,
                      (float* s, const float* q, const float* k, const float* v, ScoreSizes n, float* y),
                      (double* s, const double* q, const double* k, const double* v, ScoreSizes n, double* y),
                      (s, q, k, v, n, y))
HEED_INSTANTIATE_SIMD(score_sequences_backward,
                      (float* s, const float* q, const float* k, const float* v, ScoreSizes n, const float* dy,
                       float* dq, float* dk, float* dv),
                      (double* s, const double* q, const double* k, const double* v, ScoreSizes n, const double* dy,
                       double* dq, double* dk, double* dv),
                      (s, q, k, v, n, dy, dq, dk, dv))

}  // namespace heed::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace heed {

HEED_EXPORT_SIMD(score_sequences)
HEED_EXPORT_SIMD(score_sequences_backward)

namespace {

/// Takes scratch memory for the kernels from the arena: three matrices of a sequence's keys, a row of scores, and five
/// rows of D elements.
template <class T>
T* score_scratch(Arena& arena, std::int64_t keys, std::int64_t width) {
  const std::int64_t wide = scratch_stride<T>(width), stride = scratch_stride<T>(keys);
  return arena.tensor<T>({(3 * wide + 1) * stride + 5 * wide}).data();
}

}  // namespace

template <class T>
void additive_scores_forward(CpuContext& device, Tensor<T> query, Tensor<T> key, Tensor<T> scorer, Tensor<T> y) {
  const ArenaScope scope(device.arena);
  simd::score_sequences(score_scratch<T>(device.arena, key.dim(1), key.dim(2)), static_cast<const T*>(query.data()),
                        static_cast<const T*>(key.data()), static_cast<const T*>(scorer.data()),
                        ScoreSizes{y.dim(0), y.dim(1), y.dim(2), key.dim(2)}, y.data());
}

template <class T>
void additive_scores_backward(CpuContext& device, Tensor<T> query, Tensor<T> key, Tensor<T> scorer, Tensor<T> dy,
                              Tensor<T> dquery, Tensor<T> dkey, Tensor<T> dscorer) {
  const ArenaScope scope(device.arena);
  simd::score_sequences_backward(score_scratch<T>(device.arena, key.dim(1), key.dim(2)),
                                 static_cast<const T*>(query.data()), static_cast<const T*>(key.data()),
                                 static_cast<const T*>(scorer.data()),
                                 ScoreSizes{dy.dim(0), dy.dim(1), dy.dim(2), key.dim(2)},
                                 static_cast<const T*>(dy.data()), dquery.data(), dkey.data(), dscorer.data());
}

#define HEED_INSTANTIATE(T)                                                                                  \
  template void additive_scores_forward(CpuContext&, Tensor<T>, Tensor<T>, Tensor<T>, Tensor<T>);            \
  template void additive_scores_backward(CpuContext&, Tensor<T>, Tensor<T>, Tensor<T>, Tensor<T>, Tensor<T>, \
                                         Tensor<T>, Tensor<T>);
HEED_INSTANTIATE(float)
HEED_INSTANTIATE(double)
#undef HEED_INSTANTIATE

}  // namespace heed
#endif  // HWY_ONCE
