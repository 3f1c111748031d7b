#include <algorithm>
#include <cmath>

#include "heed/ops/attention.h"
#include "heed/ops/gemm/gemm_bfloat16.h"

// Highway, a library of SIMD vectors, compiles the kernels below once for each instruction set: its header
// <hwy/foreach_target.h> includes this file (HWY_TARGET_INCLUDE) again for each of them. At run time a kernel is called
// in the version for instruction_set(), the set that heed uses on this CPU. The code under HWY_ONCE is compiled only
// once.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "heed/ops/attention_cpu.cpp"
#include <hwy/foreach_target.h>  // IWYU pragma: keep
#include <hwy/highway.h>

#include "heed/ops/attention_heads-inl.h"
#include "heed/ops/position_terms-inl.h"
#include "heed/ops/small_gemm-inl.h"

// The file is included once for each instruction set, but this function does not depend on the instruction set. The
// guard compiles the function only once.
#ifndef HEED_OPS_ATTENTION_ONCE
#define HEED_OPS_ATTENTION_ONCE
namespace heed {
namespace {

/// Returns the stride of the scratch matrices, whose rows hold the relative vectors, if any, and the keys. Keys that
/// follow relative vectors do not begin at a whole vector, so that the vectors of a row may end later.
template <class T>
std::int64_t block_stride(const AttentionArrays<T>& a, std::int64_t most_keys) {
  const std::int64_t vectors = a.positions.relative_vectors(a.causal);
  return scratch_stride<T>(vectors > 0 ? vectors + most_keys + kAttentionSlack : most_keys);
}

}  // namespace
}  // namespace heed
#endif

HWY_BEFORE_NAMESPACE();
namespace heed::HWY_NAMESPACE {

/// Sets the attention logits of `rows` queries of a head, from query `begin` on, to the bias that positions give them.
/// The products of queries and keys are then added.
template <class T>
HWY_INLINE void begin_with_bias(const PositionArrays<T>& positions, const Head<T>& head, std::int64_t begin,
                                std::int64_t rows, bool causal, T* block, std::int64_t stride) {
  const BiasRows from = positions.bias_rows(head.sequence, head.index);
  for (std::int64_t i = begin; i < begin + rows; ++i)
    copy_vectors(positions.bias + from.first + i * from.step, causal ? i + 1 : head.keys, block + (i - begin) * stride);
}

/// Sets the first elements of each of `rows` rows, `stride` elements apart, to the sums over the keys at each distance
/// of the elements that follow (see sum_by_distance()). The rows belong to the queries from `begin` on, which attend to
/// `keys` keys or, with a causal mask, to fewer.
template <class T>
HWY_INLINE void sum_rows_by_distance(const AttentionArrays<T>& a, std::int64_t begin, std::int64_t rows,
                                     std::int64_t keys, T* block, std::int64_t stride) {
  const std::int64_t vectors = a.positions.relative_vectors(a.causal);
  for (std::int64_t i = begin; i < begin + rows; ++i, block += stride)
    sum_by_distance(static_cast<const T*>(block + vectors), a.causal ? i + 1 : keys, i - a.positions.distance, vectors,
                    block);
}

/// Computes a product of small matrices (see small_gemm()), in one function for all products that call it.
template <class T>
HWY_NOINLINE void shared_product(std::int64_t m, std::int64_t n, std::int64_t depth, LeftMatrix<T> a, const T* b,
                                 std::int64_t b_stride, T* c, std::int64_t c_stride, bool add) {
  small_gemm(m, n, depth, a, b, b_stride, c, c_stride, add);
}
/// Computes a product of small matrices. The code of an attention without terms of positions contains each of its
/// products; attentions with such terms share one function, which keeps the program small.
template <bool has_positions, class T>
HWY_INLINE void product(std::int64_t m, std::int64_t n, std::int64_t depth, LeftMatrix<T> a, const T* b,
                        std::int64_t b_stride, T* c, std::int64_t c_stride, bool add) {
  if constexpr (has_positions)
    shared_product(m, n, depth, a, b, b_stride, c, c_stride, add);
  else
    small_gemm(m, n, depth, a, b, b_stride, c, c_stride, add);
}

/// Computes the attention of all heads of all sequences, in `out` or, where it is not null, in `rounded`. `scratch` is
/// memory that attention_scratch() returned; `most_keys` is the largest number of keys in a sequence. `has_positions`
/// tells whether positions add terms: without them, an attention should not pay for the branches.
template <bool has_positions, class T>
HWY_INLINE void attend_all_forward(T* scratch, const AttentionArrays<T>* arrays, std::int64_t most_keys, T* weights,
                                   T* out, Bfloat16* rounded) {
  const AttentionArrays<T>& a = *arrays;
  const PositionArrays<T>& positions = a.positions;
  const std::int64_t d = a.width / a.heads, stride = block_stride(a, most_keys);
  // Relative vectors count as keys before the keys of the sequence: the first columns of a block are products of the
  // queries with these vectors and, after the softmax, the sums of the attention weights at each distance.
  const std::int64_t first = has_positions ? positions.relative_vectors(a.causal) : 0;
  const bool has_bias = has_positions && positions.bias;
  const T scale = 1 / std::sqrt(static_cast<T>(d));
  T *zeros = scratch, *keys_transposed = zeros + scratch_stride<T>(d), *block = keys_transposed + d * stride;
  T* const result = block + kAttentionQueryBlock * stride;  // of a head's queries, before it is rounded
  std::fill(zeros, zeros + d, T(0));
  if (first > 0) transpose_scaled(positions.relative_keys, d, first, d, scale, zeros, keys_transposed, stride);
  for_each_head(a, [&](const Head<T>& head, const Head<T>* next) HWY_ATTR {
    prefetch_operands(a, next);
    if (next) {
      if (rounded)
        prefetch_rows(rounded + next->out_at, next->queries, d, a.width);
      else
        prefetch_rows(out + next->out_at, next->queries, d, a.width);
      if (weights) prefetch_array(weights + next->weights_at, next->queries * next->keys);
    }
    transpose_scaled(head.key, a.key_stride, head.keys, d, scale, zeros, keys_transposed + first, stride);
    for (std::int64_t begin = 0; begin < head.queries; begin += kAttentionQueryBlock) {
      const std::int64_t rows = std::min(kAttentionQueryBlock, head.queries - begin);
      const std::int64_t keys = a.causal ? begin + rows : head.keys;
      const std::int64_t columns = whole_vectors<T>(first + keys);
      if (has_bias) begin_with_bias(positions, head, begin, rows, a.causal, block, stride);
      product<has_positions>(rows, columns, d, LeftMatrix<T>{head.query + begin * a.query_stride, a.query_stride, 1},
                             static_cast<const T*>(keys_transposed), stride, block, stride, has_bias);
      for (std::int64_t i = 0; i < rows && keys > 0; ++i) {
        T *products = block + i * stride, *s = products + first;
        const std::int64_t at = head.weights_at + (begin + i) * head.keys, seen = a.causal ? begin + i + 1 : keys;
        if (first > 0) add_by_distance(products, first, begin + i - positions.distance, s, seen, seen);
        attention_softmax_row(s, seen, head.keys);
        if (weights || a.mask) keep_and_drop_row(s, head.keys, weights ? weights + at : nullptr, a.mask.from(at));
      }
      if (first > 0) sum_rows_by_distance(a, begin, rows, keys, block, stride);
      const std::int64_t out_at = head.out_at + begin * a.width;
      T* const to = rounded ? result : out + out_at;
      const std::int64_t to_stride = rounded ? d : a.width;
      product<has_positions>(rows, d, keys, LeftMatrix<T>{block + first, stride, 1}, head.value, a.value_stride, to,
                             to_stride, false);
      if (first > 0)
        product<has_positions>(rows, d, first, LeftMatrix<T>{block, stride, 1}, positions.relative_values, d, to,
                               to_stride, true);
      if (rounded) convert_to_bfloat16(static_cast<const T*>(to), rows, d, d, rounded + out_at, a.width);
    }
  });
}

/// Adds the parts of relative vectors to the gradients, for `rows` queries of a head: the gradient of the queries, and
/// the gradients of the vectors themselves. The rows of `g` and `dropped`, `stride` elements apart, begin with the sums
/// over the keys at each distance: of the gradients of the logits, and of the attention weights after the dropout.
/// `query_at` is the offset of the first query, and `arrived` the gradient of the first query's result.
template <class T>
HWY_INLINE void add_relative_gradients(const AttentionArrays<T>& a, const T* g, const T* dropped, std::int64_t stride,
                                       std::int64_t rows, std::int64_t query_at, const T* arrived) {
  const PositionArrays<T>& positions = a.positions;
  const std::int64_t d = a.width / a.heads, vectors = positions.relative_vectors(a.causal);
  if (a.query_gradient)
    shared_product(rows, d, vectors, LeftMatrix<T>{g, stride, 1}, positions.relative_keys, d,
                   a.query_gradient + query_at, a.query_stride, true);
  if (positions.relative_keys_gradient)
    shared_product(vectors, d, rows, LeftMatrix<T>{g, 1, stride}, a.query + query_at, a.query_stride,
                   positions.relative_keys_gradient, d, true);
  if (positions.relative_values_gradient)
    shared_product(vectors, d, rows, LeftMatrix<T>{dropped, 1, stride}, arrived, a.width,
                   positions.relative_values_gradient, d, true);
}

/// Adds the gradients of the attention logits of query i of a head to the gradient of the bias. `g` are the gradients
/// of the query's products with the `seen` keys that it attends to; `factor` is sqrt(d), by which the gradients of the
/// logits are larger.
template <class T>
HWY_INLINE void add_bias_gradient(const PositionArrays<T>& positions, const Head<T>& head, std::int64_t i, const T* g,
                                  T factor, std::int64_t seen) {
  const BiasRows to = positions.bias_rows(head.sequence, head.index);
  add_scaled<false>(g, factor, seen, positions.bias_gradient + to.first + i * to.step);
}

/// Computes the gradients of query, key and value for all heads of all sequences. `scratch` is memory that
/// attention_scratch() returned; `most_keys` is the largest number of keys in a sequence.
template <bool has_positions, class T>
HWY_INLINE void attend_all_backward(T* scratch, const AttentionArrays<T>* arrays, std::int64_t most_keys,
                                    const T* weights, const T* out_gradient) {
  const AttentionArrays<T>& a = *arrays;
  const PositionArrays<T>& positions = a.positions;
  const std::int64_t d = a.width / a.heads, stride = block_stride(a, most_keys);
  // As in attend_forward(), the first columns of `g` and `dropped` belong to relative vectors.
  const std::int64_t first = has_positions ? positions.relative_vectors(a.causal) : 0;
  const bool has_bias = has_positions && positions.bias_gradient;
  const T scale = 1 / std::sqrt(static_cast<T>(d)), inverse_scale = std::sqrt(static_cast<T>(d));
  T *zeros = scratch, *values_transposed = zeros + scratch_stride<T>(d), *g = values_transposed + d * stride;
  T* dropped = g + kAttentionQueryBlock * stride;
  std::fill(zeros, zeros + d, T(0));
  if (first > 0) transpose_scaled(positions.relative_values, d, first, d, T(1), zeros, values_transposed, stride);
  for_each_head(a, [&](const Head<T>& head, const Head<T>* next) HWY_ATTR {
    prefetch_operands(a, next);
    if (next) {
      prefetch_rows(out_gradient + next->out_at, next->queries, d, a.width);
      if (a.query_gradient) prefetch_rows(a.query_gradient + next->query_at, next->queries, d, a.query_stride);
      if (a.key_gradient) prefetch_rows(a.key_gradient + next->key_at, next->keys, d, a.key_stride);
      if (a.value_gradient) prefetch_rows(a.value_gradient + next->value_at, next->keys, d, a.value_stride);
    }
    transpose_scaled(head.value, a.value_stride, head.keys, d, T(1), zeros, values_transposed + first, stride);
    if (a.overwrite_value_gradient) zero_rows(a.value_gradient + head.value_at, head.keys, d, a.value_stride);
    if (a.overwrite_key_gradient) zero_rows(a.key_gradient + head.key_at, head.keys, d, a.key_stride);
    for (std::int64_t begin = 0; begin < head.queries; begin += kAttentionQueryBlock) {
      const std::int64_t rows = std::min(kAttentionQueryBlock, head.queries - begin);
      const std::int64_t keys = a.causal ? begin + rows : head.keys;
      const T* arrived = out_gradient + head.out_at + begin * a.width;
      product<has_positions>(rows, whole_vectors<T>(first + keys), d, LeftMatrix<T>{arrived, a.width, 1},
                             static_cast<const T*>(values_transposed), stride, g, stride, false);
      for (std::int64_t i = 0; i < rows; ++i) {
        T *products = g + i * stride, *row = products + first;
        const std::int64_t at = head.weights_at + (begin + i) * head.keys, seen = a.causal ? begin + i + 1 : keys;
        if (first > 0) add_by_distance(products, first, begin + i - positions.distance, row, seen, keys);
        softmax_gradient_row(row, weights + at, keys, a.mask.from(at), scale, dropped + i * stride + first);
        if (a.weights_gradient) add_softmax_gradient_row(a.weights_gradient + at, weights + at, keys, scale, row);
        if (has_bias) add_bias_gradient(positions, head, begin + i, row, inverse_scale, seen);
      }
      if (first > 0) sum_rows_by_distance(a, begin, rows, keys, g, stride);
      if (first > 0) sum_rows_by_distance(a, begin, rows, keys, dropped, stride);
      const std::int64_t query_at = head.query_at + begin * a.query_stride;
      if (a.value_gradient)
        product<has_positions>(keys, d, rows, LeftMatrix<T>{dropped + first, 1, stride}, arrived, a.width,
                               a.value_gradient + head.value_at, a.value_stride, true);
      if (a.query_gradient)
        product<has_positions>(rows, d, keys, LeftMatrix<T>{g + first, stride, 1}, head.key, a.key_stride,
                               a.query_gradient + query_at, a.query_stride, !a.overwrite_query_gradient);
      if (a.key_gradient)
        product<has_positions>(keys, d, rows, LeftMatrix<T>{g + first, 1, stride}, a.query + query_at, a.query_stride,
                               a.key_gradient + head.key_at, a.key_stride, true);
      if (first > 0) add_relative_gradients(a, g, dropped, stride, rows, query_at, arrived);
    }
  });
}

/// Computes the attention (see attend_all_forward()).
template <class T>
void attend_forward(T* scratch, const AttentionArrays<T>* arrays, std::int64_t most_keys, T* weights, T* out,
                    Bfloat16* rounded) {
  if (arrays->positions)
    attend_all_forward<true>(scratch, arrays, most_keys, weights, out, rounded);
  else
    attend_all_forward<false>(scratch, arrays, most_keys, weights, out, rounded);
}

/// Computes the gradients of the attention (see attend_all_backward()).
template <class T>
void attend_backward(T* scratch, const AttentionArrays<T>* arrays, std::int64_t most_keys, const T* weights,
                     const T* out_gradient) {
  if (arrays->positions)
    attend_all_backward<true>(scratch, arrays, most_keys, weights, out_gradient);
  else
    attend_all_backward<false>(scratch, arrays, most_keys, weights, out_gradient);
}

HEED_INSTANTIATE_SIMD(attend_forward,
                      (float* s, const AttentionArrays<float>* a, std::int64_t k, float* w, float* o, Bfloat16* r),
                      (double* s, const AttentionArrays<double>* a, std::int64_t k, double* w, double* o, Bfloat16* r),
                      (s, a, k, w, o, r))
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
/// head, the results of kAttentionQueryBlock queries, and two matrices with as many rows (queries) and `most_keys`
/// columns, the largest number of keys in a sequence. With relative vectors, the matrices have columns for these as
/// well.
template <class T>
T* attention_scratch(Arena& arena, const AttentionArrays<T>& a, std::int64_t most_keys) {
  const std::int64_t d = a.width / a.heads;
  return arena
      .tensor<T>({(1 + kAttentionQueryBlock) * scratch_stride<T>(d) +
                  (d + 2 * kAttentionQueryBlock) * block_stride(a, most_keys)})
      .data();
}

}  // namespace

template <class T>
T* attention_kept(CpuContext& device, const AttentionArrays<T>& arrays, bool recording) {
  if (arrays.weights || !recording) return arrays.weights;
  const std::int64_t size = attention_weights_size(arrays.queries, arrays.keys, arrays.heads);
  return device.arena.tensor<T>({size + kAttentionSlack}).data();
}

template <class T>
void attention_forward(CpuContext& device, const AttentionArrays<T>& arrays, T* kept, MaybeRounded<T> out) {
  const ArenaScope scope(device.arena);
  const std::int64_t most_keys = arrays.keys.longest();
  if (kept) {
    T* slack = kept + attention_weights_size(arrays.queries, arrays.keys, arrays.heads);
    std::fill(slack, slack + kAttentionSlack, T(0));
  }
  simd::attend_forward(attention_scratch(device.arena, arrays, most_keys), &arrays, most_keys, kept, out.full.data(),
                       out.rounded.data());
}

template <class T>
void attention_backward(CpuContext& device, const AttentionArrays<T>& arrays, const T* kept, MaybeRounded<T>,
                        MaybeRounded<T> out_gradient) {
  const ArenaScope scope(device.arena);
  const std::int64_t most_keys = arrays.keys.longest();
  simd::attend_backward(attention_scratch(device.arena, arrays, most_keys), &arrays, most_keys, kept,
                        static_cast<const T*>(out_gradient.full.data()));
}

template float* attention_kept(CpuContext&, const AttentionArrays<float>&, bool);
template double* attention_kept(CpuContext&, const AttentionArrays<double>&, bool);
template void attention_forward(CpuContext&, const AttentionArrays<float>&, float*, MaybeRounded<float>);
template void attention_forward(CpuContext&, const AttentionArrays<double>&, double*, MaybeRounded<double>);
template void attention_backward(CpuContext&, const AttentionArrays<float>&, const float*, MaybeRounded<float>,
                                 MaybeRounded<float>);
template void attention_backward(CpuContext&, const AttentionArrays<double>&, const double*, MaybeRounded<double>,
                                 MaybeRounded<double>);

}  // namespace heed
#endif  // HWY_ONCE
