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

#include "heed/ops/attention_heads-inl.h"
#include "heed/ops/small_gemm-inl.h"
#include "heed/ops/tanh-inl.h"

HWY_BEFORE_NAMESPACE();
namespace heed::HWY_NAMESPACE {

// The kernels compute sigmoids r = 1 / (1 + e^(2q + 2k)) instead of tanh(q + k) = 1 - 2 r. Since e^(2q + 2k) is the
// product of e^(2q) and e^(2k), the kernels need exponentials only for each query and each key, not for each pair. For
// a pair they multiply, add and divide, with one division for four sigmoids. With sigmoids, the score is the sum of
// -2 v r, but for a constant that softmax ignores, and the derivative of tanh is 4 r (1 - r).
//
// e^(2x) is computed for |x| <= kLargestFactor, so that no product overflows. Where a query or a key of the head has a
// larger element, the tangents of that query are computed one by one ("direct").

template <class T>
constexpr T kLargestFactor = 20;

/// Computes four vectors of sigmoids r = 1 / (1 + e^(2q + 2k)). With `kDirect`, the arguments are q and k, otherwise
/// e^(2q) and e^(2k), and 1 / r is cut off at 2^30 (float) or 2^60 (double), where tanh is 1.
template <bool kDirect, class D, class V>
HWY_INLINE void four_sigmoids(D d, const V (&q)[4], const V (&k)[4], V (&r)[4]) {
  using T = hn::TFromD<D>;
  if constexpr (kDirect) {
    const V half = hn::Set(d, T(0.5));
    for (int i = 0; i < 4; ++i) r[i] = hn::NegMulAdd(half, tanh(d, hn::Add(q[i], k[i])), half);
  } else {
    const V one = hn::Set(d, T(1)), most = hn::Set(d, sizeof(T) == 4 ? T(0x1p30) : T(0x1p60));
    V c[4];
    for (int i = 0; i < 4; ++i) c[i] = hn::Min(hn::MulAdd(q[i], k[i], one), most);
    four_reciprocals(d, c, r);
  }
}

/// Returns d, the number of columns of a head, rounded up to whole vectors and to a multiple of four.
template <class T>
HWY_INLINE std::int64_t padded_depth(std::int64_t d) {
  return whole_vectors<T>((d + 3) / 4 * 4);
}

/// Computes e^(2x) for n elements, a whole number of vectors. Returns false where some |x| is greater than
/// kLargestFactor or not a number.
template <class T>
HWY_INLINE bool exponentials(const T* HWY_RESTRICT x, std::int64_t n, T* HWY_RESTRICT out) {
  const hn::ScalableTag<T> d;
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
  bool small = true;
  for (std::int64_t i = 0; i < n; i += lanes) {
    const auto v = hn::LoadU(d, x + i);
    small = small && hn::AllTrue(d, hn::Le(hn::Abs(v), hn::Set(d, kLargestFactor<T>)));
    hn::StoreU(hn::Exp(d, hn::Add(v, v)), d, out + i);
  }
  return small;
}

/// A row of a query or key, padded with zeros, and e^(2x) of each element.
template <class T>
struct PaddedRow {
  T *plain, *exponential;
  bool small;  ///< whether all elements are small enough for products of exponentials

  /// Sets the row to x [n], padded to `depth` elements.
  HWY_INLINE void set(const T* x, std::int64_t n, std::int64_t depth) {
    std::copy_n(x, n, plain);
    std::fill(plain + n, plain + depth, T(0));
    small = exponentials(plain, depth, exponential);
  }
};

/// Computes the scores of one query: out[j] = sum over c of factors[c] r(q[c], keys[c][j]) for the keys 0 ...
/// `columns` - 1, a whole number of vectors. `keys` is transposed: `depth` rows, which begin `stride` elements apart.
/// Each score is one sum in a fixed order.
template <bool kDirect, class T>
HWY_INLINE void additive_scores(const T* HWY_RESTRICT q, const T* HWY_RESTRICT keys, std::int64_t stride,
                                const T* HWY_RESTRICT factors, std::int64_t depth, std::int64_t columns,
                                T* HWY_RESTRICT out) {
  const hn::ScalableTag<T> d;
  using V = hn::Vec<decltype(d)>;
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
  for (std::int64_t j = 0; j < columns; j += lanes) {
    V sum = hn::Zero(d);
    for (std::int64_t c = 0; c < depth; c += 4) {
      const T* const k = keys + c * stride + j;
      const V queries[4] = {hn::Set(d, q[c]), hn::Set(d, q[c + 1]), hn::Set(d, q[c + 2]), hn::Set(d, q[c + 3])};
      const V of_keys[4] = {hn::LoadU(d, k), hn::LoadU(d, k + stride), hn::LoadU(d, k + 2 * stride),
                            hn::LoadU(d, k + 3 * stride)};
      V r[4];
      four_sigmoids<kDirect>(d, queries, of_keys, r);
      const V low = hn::MulAdd(hn::Set(d, factors[c + 1]), r[1], hn::Mul(hn::Set(d, factors[c]), r[0]));
      const V high = hn::MulAdd(hn::Set(d, factors[c + 3]), r[3], hn::Mul(hn::Set(d, factors[c + 2]), r[2]));
      sum = hn::Add(sum, hn::Add(low, high));
    }
    hn::StoreU(sum, d, out + j);
  }
}

/// Computes the additive attention of all heads of all sequences. `scratch` is memory that additive_scratch() returned;
/// `most_keys` is the largest number of keys in a sequence.
template <class T>
void attend_additive_forward(T* scratch, const AdditiveAttentionArrays<T>* arrays, std::int64_t most_keys, T* weights,
                             T* out) {
  const AttentionArrays<T>& a = arrays->attention;
  const std::int64_t d = a.width / a.heads, depth = padded_depth<T>(d), wide = scratch_stride<T>(d);
  const std::int64_t stride = scratch_stride<T>(most_keys);
  T *zeros = scratch, *factors = zeros + wide, *keys_transposed = factors + wide;
  T *key_exponentials = keys_transposed + wide * stride, *block = key_exponentials + wide * stride;
  T* of_query = block + kAttentionQueryBlock * stride;
  PaddedRow<T> query{of_query, of_query + wide, true};
  std::fill(zeros, zeros + wide, T(0));
  std::fill(factors, factors + wide, T(0));
  for_each_head(a, [&](const Head<T>& head) HWY_ATTR {
    const std::int64_t columns = whole_vectors<T>(head.keys);
    transpose_scaled(head.key, a.key_stride, head.keys, d, T(1), zeros, keys_transposed, stride);
    bool small = true;
    for (std::int64_t c = 0; c < depth; ++c) {
      T* const row = keys_transposed + c * stride;
      if (c >= d) std::fill_n(row, columns, T(0));
      small = exponentials(row, columns, key_exponentials + c * stride) && small;
    }
    for (std::int64_t c = 0; c < d; ++c) factors[c] = -2 * arrays->scorer[head.out_at % a.width + c];
    for (std::int64_t begin = 0; begin < head.queries; begin += kAttentionQueryBlock) {
      const std::int64_t rows = std::min(kAttentionQueryBlock, head.queries - begin);
      const std::int64_t keys = a.causal ? begin + rows : head.keys;
      for (std::int64_t i = 0; i < rows && keys > 0; ++i) {
        const std::int64_t seen = a.causal ? begin + i + 1 : keys, at = head.weights_at + (begin + i) * head.keys;
        T* const s = block + i * stride;
        query.set(head.query + (begin + i) * a.query_stride, d, depth);
        if (small && query.small)
          additive_scores<false>(query.exponential, key_exponentials, stride, factors, depth, whole_vectors<T>(seen),
                                 s);
        else
          additive_scores<true>(query.plain, keys_transposed, stride, factors, depth, whole_vectors<T>(seen), s);
        attention_softmax_row(s, seen, head.keys);
        if (weights || a.mask) keep_and_drop_row(s, head.keys, weights ? weights + at : nullptr, a.mask.from(at));
      }
      small_gemm(rows, d, keys, LeftMatrix<T>{block, stride, 1}, head.value, a.value_stride,
                 out + head.out_at + begin * a.width, a.width, false);
    }
  });
}

/// Adds the gradients that one query causes, from the gradients g of the query's scores over the keys 0 ... `keys` - 1,
/// but for the factors that add_gradient() multiplies by: to dq the sum over the keys of g r (1 - r), to the rows of dk
/// their terms g r (1 - r), and to ds the sum over the keys of g r. All rows have `depth` elements; the rows of k and
/// dk begin `wide` elements apart. `keys` is a multiple of four.
template <bool kDirect, class T>
HWY_INLINE void additive_backward_row(const T* HWY_RESTRICT g, std::int64_t keys, const T* HWY_RESTRICT q,
                                      const T* HWY_RESTRICT k, std::int64_t wide, std::int64_t depth,
                                      T* HWY_RESTRICT dq, T* HWY_RESTRICT dk, T* HWY_RESTRICT ds) {
  const hn::ScalableTag<T> d;
  using V = hn::Vec<decltype(d)>;
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
  for (std::int64_t c = 0; c < depth; c += lanes) {
    const V query = hn::LoadU(d, q + c);
    V sum_q = hn::Zero(d), sum_s = hn::LoadU(d, ds + c);
    for (std::int64_t j = 0; j < keys; j += 4) {
      const T* const of_key = k + j * wide + c;
      const V queries[4] = {query, query, query, query};
      const V of_keys[4] = {hn::LoadU(d, of_key), hn::LoadU(d, of_key + wide), hn::LoadU(d, of_key + 2 * wide),
                            hn::LoadU(d, of_key + 3 * wide)};
      V r[4];
      four_sigmoids<kDirect>(d, queries, of_keys, r);
      for (int i = 0; i < 4; ++i) {
        const V gradient = hn::Set(d, g[j + i]), slope = hn::Mul(gradient, hn::NegMulAdd(r[i], r[i], r[i]));
        sum_s = hn::MulAdd(gradient, r[i], sum_s);
        sum_q = hn::Add(sum_q, slope);
        T* const to = dk + (j + i) * wide + c;
        hn::StoreU(hn::Add(hn::LoadU(d, to), slope), d, to);
      }
    }
    hn::StoreU(sum_q, d, dq + c);
    hn::StoreU(sum_s, d, ds + c);
  }
}

/// Computes to = factor factors x for n elements, or adds the products where `add` is true.
template <class T>
HWY_INLINE void add_gradient(const T* HWY_RESTRICT x, const T* HWY_RESTRICT factors, T factor, std::int64_t n, bool add,
                             T* HWY_RESTRICT to) {
  for (std::int64_t i = 0; i < n; ++i) to[i] = (add ? to[i] : 0) + factor * factors[i] * x[i];
}

/// Computes the gradients of query, key, value and scorer for all heads of all sequences. `scratch` is memory that
/// additive_scratch() returned; `most_keys` is the largest number of keys in a sequence.
template <class T>
void attend_additive_backward(T* scratch, const AdditiveAttentionArrays<T>* arrays, std::int64_t most_keys,
                              const T* weights, const T* out_gradient) {
  const AttentionArrays<T>& a = arrays->attention;
  const std::int64_t d = a.width / a.heads, depth = padded_depth<T>(d), wide = scratch_stride<T>(d);
  const std::int64_t stride = scratch_stride<T>(most_keys);
  T *zeros = scratch, *values_transposed = zeros + wide, *g = values_transposed + wide * stride;
  T *dropped = g + kAttentionQueryBlock * stride, *plain_keys = dropped + kAttentionQueryBlock * stride;
  T *key_exponentials = plain_keys + wide * stride, *dk = key_exponentials + wide * stride;
  T *dq = dk + wide * stride, *ds = dq + wide, *of_query = ds + wide;
  PaddedRow<T> query{of_query, of_query + wide, true};
  std::fill(zeros, zeros + wide, T(0));
  for_each_head(a, [&](const Head<T>& head) HWY_ATTR {
    const T* const scorer = arrays->scorer + head.out_at % a.width;
    const std::int64_t whole = (head.keys + 3) / 4 * 4;
    bool small = true;
    for (std::int64_t j = 0; j < whole; ++j) {
      PaddedRow<T> key{plain_keys + j * wide, key_exponentials + j * wide, true};
      key.set(j < head.keys ? head.key + j * a.key_stride : zeros, d, depth);
      small = small && key.small;
      std::fill_n(dk + j * wide, depth, T(0));
    }
    std::fill_n(ds, depth, T(0));
    transpose_scaled(head.value, a.value_stride, head.keys, d, T(1), zeros, values_transposed, stride);
    if (a.value_gradient_empty) zero_rows(a.value_gradient + head.value_at, head.keys, d, a.value_stride);
    for (std::int64_t begin = 0; begin < head.queries; begin += kAttentionQueryBlock) {
      const std::int64_t rows = std::min(kAttentionQueryBlock, head.queries - begin);
      const std::int64_t keys = a.causal ? begin + rows : head.keys;
      const T* arrived = out_gradient + head.out_at + begin * a.width;
      small_gemm(rows, whole_vectors<T>(keys), d, LeftMatrix<T>{arrived, a.width, 1},
                 static_cast<const T*>(values_transposed), stride, g, stride, false);
      for (std::int64_t i = 0; i < rows; ++i) {
        const std::int64_t at = head.weights_at + (begin + i) * head.keys;
        const std::int64_t seen = ((a.causal ? begin + i + 1 : keys) + 3) / 4 * 4;
        T* const row = g + i * stride;
        softmax_gradient_row(row, weights + at, keys, a.mask.from(at), T(1), dropped + i * stride);
        std::fill(row + keys, row + std::max(keys, seen), T(0));
        query.set(head.query + (begin + i) * a.query_stride, d, depth);
        if (small && query.small)
          additive_backward_row<false>(row, seen, query.exponential, key_exponentials, wide, depth, dq, dk, ds);
        else
          additive_backward_row<true>(row, seen, query.plain, plain_keys, wide, depth, dq, dk, ds);
        if (a.query_gradient)
          add_gradient(dq, scorer, T(4), d, !a.query_gradient_empty,
                       a.query_gradient + head.query_at + (begin + i) * a.query_stride);
      }
      if (a.value_gradient)
        small_gemm(keys, d, rows, LeftMatrix<T>{dropped, 1, stride}, arrived, a.width, a.value_gradient + head.value_at,
                   a.value_stride, true);
    }
    for (std::int64_t j = 0; a.key_gradient && j < head.keys; ++j)
      add_gradient(dk + j * wide, scorer, T(4), d, !a.key_gradient_empty,
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
  const std::int64_t most_keys = longest(a.keys);
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
  const std::int64_t most_keys = longest(arrays.attention.keys);
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
