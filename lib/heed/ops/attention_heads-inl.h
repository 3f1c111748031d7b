// What the kernels of the attention ops share, whatever their scores are: the loop over the heads of a packed batch,
// and dropout and softmax of one query's attention weights with their backward pass. Each .cpp file with kernels
// includes this file once for each instruction set; the unusual include guard below allows that.
#if defined(HEED_OPS_ATTENTION_HEADS_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef HEED_OPS_ATTENTION_HEADS_INL_H_
#undef HEED_OPS_ATTENTION_HEADS_INL_H_
#else
#define HEED_OPS_ATTENTION_HEADS_INL_H_
#endif

#include <hwy/highway.h>

#include <algorithm>
#include <cstdint>

#include "heed/ops/attention.h"
#include "heed/ops/attention_softmax-inl.h"
#include "heed/ops/prefetch.h"
#include "heed/ops/simd-inl.h"

HWY_BEFORE_NAMESPACE();
namespace heed::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

/// What the kernels need to compute one head of one sequence: pointers to the operands, sizes and offsets.
template <class T>
struct Head {
  /// The first element of the head's columns, in the sequence's first row of query, key and value.
  const T *query, *key, *value;
  /// The numbers of queries and keys in the sequence.
  std::int64_t queries, keys;
  /// The offset of the head's first attention weight in the array of all attention weights.
  std::int64_t weights_at;
  /// The offsets of the head's first element in the arrays of query, key, value and out. The gradients have the same
  /// offsets.
  std::int64_t query_at, key_at, value_at, out_at;
  /// The index of the head, from 0.
  std::int64_t index;
  /// The number of the sequence, from 0.
  int sequence;
};

/// Loads the operands of a head ahead (see prefetch_rows()); null stands for no head.
template <class T>
HWY_INLINE void prefetch_operands(const AttentionArrays<T>& a, const Head<T>* head) {
  if (!head) return;
  const std::int64_t d = a.width / a.heads;
  prefetch_rows(head->query, head->queries, d, a.query_stride);
  prefetch_rows(head->key, head->keys, d, a.key_stride);
  prefetch_rows(head->value, head->keys, d, a.value_stride);
}

/// Calls body(head, next) for every head of every sequence, in the order in which the attention weights are stored.
/// `next` is the head of the next call, null in the last call.
template <class T, class Body>
HWY_INLINE void for_each_head(const AttentionArrays<T>& a, Body body) {
  const std::int64_t d = a.width / a.heads;
  const auto head_at = [&](int b, std::int64_t h, std::int64_t weights_at) HWY_ATTR {
    const std::int64_t query_at = a.queries.begin(b) * a.query_stride + h * d;
    const std::int64_t key_at = a.keys.begin(b) * a.key_stride + h * d;
    const std::int64_t value_at = a.keys.begin(b) * a.value_stride + h * d;
    return Head<T>{.query = a.query + query_at,
                   .key = a.key + key_at,
                   .value = a.value + value_at,
                   .queries = a.queries.length(b),
                   .keys = a.keys.length(b),
                   .weights_at = weights_at,
                   .query_at = query_at,
                   .key_at = key_at,
                   .value_at = value_at,
                   .out_at = a.queries.begin(b) * a.width + h * d,
                   .index = h,
                   .sequence = b};
  };
  const std::int64_t count = a.queries.sequences() * a.heads;
  if (count == 0) return;
  Head<T> head = head_at(0, 0, 0);
  for (std::int64_t i = 1; i < count; ++i) {
    const Head<T> next =
        head_at(static_cast<int>(i / a.heads), i % a.heads, head.weights_at + head.queries * head.keys);
    body(head, &next);
    head = next;
  }
  body(head, static_cast<const Head<T>*>(nullptr));
}

/// Returns the factors by which dropout multiplies a vector: 0 for a dropped element, `scale` for a kept element.
template <class D, class T>
HWY_INLINE hn::Vec<D> dropout_factors(D d, const std::uint8_t* kept, T scale) {
  const auto bits = hn::PromoteTo(hn::Rebind<std::int32_t, D>(), hn::LoadU(hn::Rebind<std::uint8_t, D>(), kept));
  if constexpr (sizeof(T) == 8)
    return hn::Mul(hn::PromoteTo(d, bits), hn::Set(d, scale));
  else
    return hn::Mul(hn::ConvertTo(d, bits), hn::Set(d, scale));
}

/// Copies `s`, the attention weights of one query, to `kept_weights` (unless null), and then applies the dropout mask
/// (unless absent) to `s`. Whole vectors are copied, so some elements of `kept_weights` after this query's weights are
/// overwritten. Those elements belong to later queries, whose weights are copied later.
template <class T>
HWY_INLINE void keep_and_drop_row(T* HWY_RESTRICT s, std::int64_t columns, T* HWY_RESTRICT kept_weights,
                                  DropoutMask<T> mask) {
  const hn::ScalableTag<T> d;
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
  for (std::int64_t i = 0; i < columns; i += lanes) {
    const auto p = hn::LoadU(d, s + i);
    if (kept_weights) hn::StoreU(p, d, kept_weights + i);
    if (mask) hn::StoreU(hn::Mul(p, dropout_factors(d, mask.kept + i, mask.scale)), d, s + i);
  }
}

/// Computes the backward pass of dropout and softmax for one query. On entry `g` is the gradient of the attention
/// weights after the dropout, and `p` are the attention weights before the dropout. On return `g` is the gradient of
/// the scores Q K^T, and `dropped` are the attention weights after the dropout.
template <class T>
HWY_INLINE void softmax_gradient_row(T* HWY_RESTRICT g, const T* HWY_RESTRICT p, std::int64_t columns,
                                     DropoutMask<T> mask, T scale, T* HWY_RESTRICT dropped) {
  const hn::ScalableTag<T> d;
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
  auto sum = hn::Zero(d);
  for (std::int64_t i = 0; i < columns; i += lanes) {
    const auto weight = hn::LoadU(d, p + i);
    auto gradient = hn::LoadU(d, g + i), kept = weight;
    if (mask) {
      const auto factors = dropout_factors(d, mask.kept + i, mask.scale);
      gradient = hn::Mul(gradient, factors);
      kept = hn::Mul(kept, factors);
      hn::StoreU(gradient, d, g + i);
    }
    hn::StoreU(kept, d, dropped + i);
    sum = hn::MulAdd(weight, gradient, sum);
  }
  sum = hn::SumOfLanes(d, sum);
  for (std::int64_t i = 0; i < columns; i += lanes) {
    const auto weight = hn::Mul(hn::LoadU(d, p + i), hn::Set(d, scale));
    hn::StoreU(hn::Mul(weight, hn::Sub(hn::LoadU(d, g + i), sum)), d, g + i);
  }
}

/// Adds, for one query, the gradient of the scores that comes from a gradient `dp` of the attention weights `p` before
/// the dropout: g += scale p (dp - sum(p dp)).
template <class T>
HWY_NOINLINE void add_softmax_gradient_row(const T* HWY_RESTRICT dp, const T* HWY_RESTRICT p, std::int64_t columns,
                                           T scale, T* HWY_RESTRICT g) {
  T sum = 0;
  for (std::int64_t i = 0; i < columns; ++i) sum += p[i] * dp[i];
  for (std::int64_t i = 0; i < columns; ++i) g[i] += scale * p[i] * (dp[i] - sum);
}

/// Fills `count` rows of n elements with zeros; rows begin `stride` elements apart.
template <class T>
HWY_INLINE void zero_rows(T* rows, std::int64_t count, std::int64_t n, std::int64_t stride) {
  for (std::int64_t r = 0; r < count; ++r) std::fill_n(rows + r * stride, n, T(0));
}

}  // namespace heed::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // HEED_OPS_ATTENTION_HEADS_INL_H_
