#include <algorithm>

#include "heed/ops/additive_attention.h"

// Highway, a library of SIMD vectors, compiles the kernels below once for each instruction set: its header
// <hwy/foreach_target.h> includes this file (HWY_TARGET_INCLUDE) again for each of them. At run time a kernel is called
// in the version for instruction_set(), the set that heed uses on this CPU. The code under HWY_ONCE is compiled only
// once.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "heed/ops/additive_attention_cpu.cpp"
#include <hwy/foreach_target.h>  // IWYU pragma: keep
#include <hwy/highway.h>

#include "heed/ops/additive_scores-inl.h"
#include "heed/ops/attention_heads-inl.h"
#include "heed/ops/small_gemm-inl.h"

HWY_BEFORE_NAMESPACE();
namespace heed::HWY_NAMESPACE {

/// Computes the additive attention of all heads of all sequences. `scratch` is memory that additive_scratch() returned;
/// `most_keys` is the largest number of keys in a sequence.
template <class T>
void attend_additive_forward(T* scratch, const AdditiveAttentionArrays<T>* arrays, std::int64_t most_keys, T* weights,
                             T* out) {
  const AttentionArrays<T>& a = arrays->attention;
  const std::int64_t d = a.width / a.heads, depth = padded_depth<T>(d), wide = scratch_stride<T>(d);
  const std::int64_t stride = scratch_stride<T>(most_keys);
  T *zeros = scratch, *factors = zeros + wide, *of_query = factors + wide, *block = of_query + 2 * wide;
  T* of_keys = block + kAttentionQueryBlock * stride;
  PaddedRow<T> query{of_query, of_query + wide, true};
  TransposedKeys<T> all_keys{of_keys, of_keys + wide * stride, stride};
  std::fill(zeros, zeros + wide, T(0));
  std::fill(factors, factors + wide, T(0));
  for_each_head(a, [&](const Head<T>& head, const Head<T>*) HWY_ATTR {
    all_keys.set(head.key, a.key_stride, head.keys, d, zeros);
    for (std::int64_t c = 0; c < d; ++c) factors[c] = -2 * arrays->scorer[head.out_at % a.width + c];
    for (std::int64_t begin = 0; begin < head.queries; begin += kAttentionQueryBlock) {
      const std::int64_t rows = std::min(kAttentionQueryBlock, head.queries - begin);
      const std::int64_t keys = a.causal ? begin + rows : head.keys;
      for (std::int64_t i = 0; i < rows && keys > 0; ++i) {
        const std::int64_t seen = a.causal ? begin + i + 1 : keys, at = head.weights_at + (begin + i) * head.keys;
        T* const s = block + i * stride;
        query.set(head.query + (begin + i) * a.query_stride, d, depth);
        score_query(query, all_keys, static_cast<const T*>(factors), depth, seen, s);
        attention_softmax_row(s, seen, head.keys);
        if (weights || a.mask) keep_and_drop_row(s, head.keys, weights ? weights + at : nullptr, a.mask.from(at));
      }
      small_gemm(rows, d, keys, LeftMatrix<T>{block, stride, 1}, head.value, a.value_stride,
                 out + head.out_at + begin * a.width, a.width, false);
    }
  });
}

/// Computes the gradients of query, key, value and scorer for all heads of all sequences. `scratch` is memory that
/// additive_scratch() returned; `most_keys` is the largest number of keys in a sequence.
template <class T>
void attend_additive_backward(T* scratch, const AdditiveAttentionArrays<T>* arrays, std::int64_t most_keys,
                              const T* weights, const T* out_gradient) {
  const AttentionArrays<T>& a = arrays->attention;
  const std::int64_t d = a.width / a.heads, depth = padded_depth<T>(d), wide = scratch_stride<T>(d);
  const std::int64_t stride = scratch_stride<T>(most_keys);
  T *zeros = scratch, *dq = zeros + wide, *ds = dq + wide, *of_query = ds + wide, *g = of_query + 2 * wide;
  T *dropped = g + kAttentionQueryBlock * stride, *values_transposed = dropped + kAttentionQueryBlock * stride;
  T* of_keys = values_transposed + wide * stride;
  PaddedRow<T> query{of_query, of_query + wide, true};
  KeyRows<T> all_keys{of_keys, of_keys + wide * stride, of_keys + 2 * wide * stride, wide};
  std::fill(zeros, zeros + wide, T(0));
  for_each_head(a, [&](const Head<T>& head, const Head<T>*) HWY_ATTR {
    const T* const scorer = arrays->scorer + head.out_at % a.width;
    all_keys.set(head.key, a.key_stride, head.keys, d, zeros);
    std::fill_n(ds, depth, T(0));
    transpose_scaled(head.value, a.value_stride, head.keys, d, T(1), zeros, values_transposed, stride);
    if (a.overwrite_value_gradient) zero_rows(a.value_gradient + head.value_at, head.keys, d, a.value_stride);
    for (std::int64_t begin = 0; begin < head.queries; begin += kAttentionQueryBlock) {
      const std::int64_t rows = std::min(kAttentionQueryBlock, head.queries - begin);
      const std::int64_t keys = a.causal ? begin + rows : head.keys;
      const T* arrived = out_gradient + head.out_at + begin * a.width;
      small_gemm(rows, whole_vectors<T>(keys), d, LeftMatrix<T>{arrived, a.width, 1},
                 static_cast<const T*>(values_transposed), stride, g, stride, false);
      for (std::int64_t i = 0; i < rows; ++i) {
        const std::int64_t at = head.weights_at + (begin + i) * head.keys;
        T* const row = g + i * stride;
        softmax_gradient_row(row, weights + at, keys, a.mask.from(at), T(1), dropped + i * stride);
        if (a.weights_gradient) add_softmax_gradient_row(a.weights_gradient + at, weights + at, keys, T(1), row);
        std::fill(row + keys, row + (keys + 3) / 4 * 4, T(0));
        query.set(head.query + (begin + i) * a.query_stride, d, depth);
        backward_query(static_cast<const T*>(row), query, all_keys, a.causal ? begin + i + 1 : keys, depth, dq, ds);
        if (a.query_gradient)
          add_gradient(static_cast<const T*>(dq), scorer, T(4), d, !a.overwrite_query_gradient,
                       a.query_gradient + head.query_at + (begin + i) * a.query_stride);
      }
      if (a.value_gradient)
        small_gemm(keys, d, rows, LeftMatrix<T>{dropped, 1, stride}, arrived, a.width, a.value_gradient + head.value_at,
                   a.value_stride, true);
    }
    for (std::int64_t j = 0; a.key_gradient && j < head.keys; ++j)
      add_gradient(static_cast<const T*>(all_keys.gradient + j * wide), scorer, T(4), d, !a.overwrite_key_gradient,
                   a.key_gradient + head.key_at + j * a.key_stride);
    for (std::int64_t c = 0; arrays->scorer_gradient && c < d; ++c)
      arrays->scorer_gradient[head.out_at % a.width + c] -= 2 * ds[c];
  });
}

HEED_INSTANTIATE_SIMD(attend_additive_forward,
                      (float* s, const AdditiveAttentionArrays<float>* a, std::int64_t k, float* w, float* o),
                      (double* s, const AdditiveAttentionArrays<double>* a, std::int64_t k, double* w, double* o),
                      (s, a, k, w, o))
HEED_INSTANTIATE_SIMD(attend_additive_backward,
                      (float* s, const AdditiveAttentionArrays<float>* a, std::int64_t k, const float* w,
                       const float* o),
                      (double* s, const AdditiveAttentionArrays<double>* a, std::int64_t k, const double* w,
                       const double* o),
                      (s, a, k, w, o))

}  // namespace heed::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace heed {

HEED_EXPORT_SIMD(attend_additive_forward)
HEED_EXPORT_SIMD(attend_additive_backward)

namespace {

/// Takes scratch memory for the additive attention kernels from the arena: two matrices with kAttentionQueryBlock rows
/// (queries) and four matrices of a head's keys or values, each for `most_keys` keys, the largest number in a sequence,
/// and six rows of a head.
template <class T>
T* additive_scratch(Arena& arena, const AttentionArrays<T>& a, std::int64_t most_keys) {
  const std::int64_t wide = scratch_stride<T>(a.width / a.heads), stride = scratch_stride<T>(most_keys);
  return arena.tensor<T>({(4 * wide + 2 * kAttentionQueryBlock) * stride + 6 * wide}).data();
}

}  // namespace

template <class T>
void additive_attention_forward(CpuContext& device, const AdditiveAttentionArrays<T>& arrays, T* weights, T* out) {
  const ArenaScope scope(device.arena);
  const AttentionArrays<T>& a = arrays.attention;
  const std::int64_t most_keys = a.keys.longest();
  if (weights) {
    T* slack = weights + attention_weights_size(a.queries, a.keys, a.heads);
    std::fill(slack, slack + kAttentionSlack, T(0));
  }
  simd::attend_additive_forward(additive_scratch(device.arena, a, most_keys), &arrays, most_keys, weights, out);
}

template <class T>
void additive_attention_backward(CpuContext& device, const AdditiveAttentionArrays<T>& arrays, const T* weights,
                                 const T* out_gradient) {
  const ArenaScope scope(device.arena);
  const std::int64_t most_keys = arrays.attention.keys.longest();
  simd::attend_additive_backward(additive_scratch(device.arena, arrays.attention, most_keys), &arrays, most_keys,
                                 weights, out_gradient);
}

template void additive_attention_forward(CpuContext&, const AdditiveAttentionArrays<float>&, float*, float*);
template void additive_attention_forward(CpuContext&, const AdditiveAttentionArrays<double>&, double*, double*);
template void additive_attention_backward(CpuContext&, const AdditiveAttentionArrays<float>&, const float*,
                                          const float*);
template void additive_attention_backward(CpuContext&, const AdditiveAttentionArrays<double>&, const double*,
                                          const double*);

}  // namespace heed
#endif  // HWY_ONCE
