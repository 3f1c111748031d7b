#include <algorithm>
#include <cmath>

#include "heed/ops/attention.h"

// Highway, a library of SIMD vectors, compiles the kernels below once for each instruction set: its header
// <hwy/foreach_target.h> includes this file (HWY_TARGET_INCLUDE) again for each of them. At run time a kernel is called
// in the version for instruction_set(), the set that heed uses on this CPU. The code under HWY_ONCE is compiled only
// once.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "heed/ops/attention_cpu.cpp"
#include <hwy/foreach_target.h>  // IWYU pragma: keep
#include <hwy/highway.h>

#include "heed/ops/attention_heads-inl.h"
#include "heed/ops/small_gemm-inl.h"

HWY_BEFORE_NAMESPACE();
namespace heed::HWY_NAMESPACE {

/// Computes the attention of all heads of all sequences. `scratch` is memory that attention_scratch() returned;
/// `most_keys` is the largest number of keys in a sequence.
template <class T>
void attend_forward(T* scratch, const AttentionArrays<T>* arrays, std::int64_t most_keys, T* weights, T* out) {
  const AttentionArrays<T>& a = *arrays;
  const std::int64_t d = a.width / a.heads, stride = scratch_stride<T>(most_keys);
  const T scale = 1 / std::sqrt(static_cast<T>(d));
  T *zeros = scratch, *keys_transposed = zeros + scratch_stride<T>(d), *block = keys_transposed + d * stride;
  std::fill(zeros, zeros + d, T(0));
  for_each_head(a, [&](const Head<T>& head) HWY_ATTR {
    transpose_scaled(head.key, a.key_stride, head.keys, d, scale, zeros, keys_transposed, stride);
    for (std::int64_t begin = 0; begin < head.queries; begin += kAttentionQueryBlock) {
      const std::int64_t rows = std::min(kAttentionQueryBlock, head.queries - begin);
      const std::int64_t keys = a.causal ? begin + rows : head.keys;
      const std::int64_t columns = whole_vectors<T>(keys);
      small_gemm(rows, columns, d, LeftMatrix<T>{head.query + begin * a.query_stride, a.query_stride, 1},
                 static_cast<const T*>(keys_transposed), stride, block, stride, false);
      for (std::int64_t i = 0; i < rows && keys > 0; ++i) {
        T* s = block + i * stride;
        const std::int64_t at = head.weights_at + (begin + i) * head.keys;
        attention_softmax_row(s, a.causal ? begin + i + 1 : keys, head.keys);
        if (weights || a.mask) keep_and_drop_row(s, head.keys, weights ? weights + at : nullptr, a.mask.from(at));
      }
      small_gemm(rows, d, keys, LeftMatrix<T>{block, stride, 1}, head.value, a.value_stride,
                 out + head.out_at + begin * a.width, a.width, false);
    }
  });
}

/// Computes the gradients of query, key and value for all heads of all sequences. `scratch` is memory that
/// attention_scratch() returned; `most_keys` is the largest number of keys in a sequence.
template <class T>
void attend_backward(T* scratch, const AttentionArrays<T>* arrays, std::int64_t most_keys, const T* weights,
                     const T* out_gradient) {
  const AttentionArrays<T>& a = *arrays;
  const std::int64_t d = a.width / a.heads, stride = scratch_stride<T>(most_keys);
  const T scale = 1 / std::sqrt(static_cast<T>(d));
  T *zeros = scratch, *values_transposed = zeros + scratch_stride<T>(d), *g = values_transposed + d * stride;
  T* dropped = g + kAttentionQueryBlock * stride;
  std::fill(zeros, zeros + d, T(0));
  for_each_head(a, [&](const Head<T>& head) HWY_ATTR {
    transpose_scaled(head.value, a.value_stride, head.keys, d, T(1), zeros, values_transposed, stride);
    if (a.value_gradient_empty) zero_rows(a.value_gradient + head.value_at, head.keys, d, a.value_stride);
    if (a.key_gradient_empty) zero_rows(a.key_gradient + head.key_at, head.keys, d, a.key_stride);
    for (std::int64_t begin = 0; begin < head.queries; begin += kAttentionQueryBlock) {
      const std::int64_t rows = std::min(kAttentionQueryBlock, head.queries - begin);
      const std::int64_t keys = a.causal ? begin + rows : head.keys;
      const T* arrived = out_gradient + head.out_at + begin * a.width;
      small_gemm(rows, whole_vectors<T>(keys), d, LeftMatrix<T>{arrived, a.width, 1},
                 static_cast<const T*>(values_transposed), stride, g, stride, false);
      for (std::int64_t i = 0; i < rows; ++i) {
        const std::int64_t at = head.weights_at + (begin + i) * head.keys;
        softmax_gradient_row(g + i * stride, weights + at, keys, a.mask.from(at), scale, dropped + i * stride);
      }
      const std::int64_t query_at = head.query_at + begin * a.query_stride;
      if (a.value_gradient)
        small_gemm(keys, d, rows, LeftMatrix<T>{dropped, 1, stride}, arrived, a.width, a.value_gradient + head.value_at,
                   a.value_stride, true);
      if (a.query_gradient)
        small_gemm(rows, d, keys, LeftMatrix<T>{g, stride, 1}, head.key, a.key_stride, a.query_gradient + query_at,
                   a.query_stride, !a.query_gradient_empty);
      if (a.key_gradient)
        small_gemm(keys, d, rows, LeftMatrix<T>{g, 1, stride}, a.query + query_at, a.query_stride,
                   a.key_gradient + head.key_at, a.key_stride, true);
    }
  });
}

HEED_INSTANTIATE_SIMD(attend_forward, (float* s, const AttentionArrays<float>* a, std::int64_t k, float* w, float* o),
                      (double* s, const AttentionArrays<double>* a, std::int64_t k, double* w, double* o),
                      (s, a, k, w, o))
HEED_INSTANTIATE_SIMD(attend_backward,
                      (float* s, const AttentionArrays<float>* a, std::int64_t k, const float* w, const float* o),
                      (double* s, const AttentionArrays<double>* a, std::int64_t k, const double* w, const double* o),
                      (s, a, k, w, o))

}  // namespace heed::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace heed {

HEED_EXPORT_SIMD(attend_forward)
HEED_EXPORT_SIMD(attend_backward)

namespace {

/// Takes scratch memory for the attention kernels from the arena: a row of zeros, the transposed keys or values of one
/// head, and two matrices with kAttentionQueryBlock rows (queries) and `most_keys` columns, the largest number of keys
/// in a sequence.
template <class T>
T* attention_scratch(Arena& arena, const AttentionArrays<T>& a, std::int64_t most_keys) {
  const std::int64_t d = a.width / a.heads;
  return arena.tensor<T>({scratch_stride<T>(d) + (d + 2 * kAttentionQueryBlock) * scratch_stride<T>(most_keys)}).data();
}

}  // namespace

template <class T>
void attention_forward(CpuContext& device, const AttentionArrays<T>& arrays, T* weights, T* out) {
  const ArenaScope scope(device.arena);
  const std::int64_t most_keys = longest(arrays.keys);
  if (weights) {
    T* slack = weights + attention_weights_size(arrays.queries, arrays.keys, arrays.heads);
    std::fill(slack, slack + kAttentionSlack, T(0));
  }
  simd::attend_forward(attention_scratch(device.arena, arrays, most_keys), &arrays, most_keys, weights, out);
}

template <class T>
void attention_backward(CpuContext& device, const AttentionArrays<T>& arrays, const T* weights, const T* out_gradient) {
  const ArenaScope scope(device.arena);
  const std::int64_t most_keys = longest(arrays.keys);
  simd::attend_backward(attention_scratch(device.arena, arrays, most_keys), &arrays, most_keys, weights, out_gradient);
}

template void attention_forward(CpuContext&, const AttentionArrays<float>&, float*, float*);
template void attention_forward(CpuContext&, const AttentionArrays<double>&, double*, double*);
template void attention_backward(CpuContext&, const AttentionArrays<float>&, const float*, const float*);
template void attention_backward(CpuContext&, const AttentionArrays<double>&, const double*, const double*);

}  // namespace heed
#endif  // HWY_ONCE
