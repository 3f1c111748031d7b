// The scores of additive attention, sum over c of v_c tanh(q_c + k_c), and their backward pass, for one query and the
// keys of one sequence. Each .cpp file with kernels includes this file once for each instruction set; the unusual
// include guard below allows that.
//
// The functions compute sigmoids r = 1 / (1 + e^(2q + 2k)) instead of tanh(q + k) = 1 - 2 r. Since e^(2q + 2k) is the
// product of e^(2q) and e^(2k), the kernels need exponentials only for each query and each key, not for each pair. For
// a pair they multiply, add and divide, with one division for four sigmoids. With sigmoids, the score is the sum of
// -2 v r, up to a constant that softmax ignores, and the derivative of tanh is 4 r (1 - r).
//
// e^(2x) is computed for |x| <= kLargestFactor, so that no product overflows. Where a query or a key of the head has a
// larger element, the sigmoids of that query are computed one by one ("direct").
#if defined(HEED_OPS_ADDITIVE_SCORES_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef HEED_OPS_ADDITIVE_SCORES_INL_H_
#undef HEED_OPS_ADDITIVE_SCORES_INL_H_
#else
#define HEED_OPS_ADDITIVE_SCORES_INL_H_
#endif

#include <hwy/highway.h>

#include <algorithm>
#include <cstdint>

#include "heed/ops/gates-inl.h"
#include "heed/ops/simd-inl.h"
#include "heed/ops/small_gemm-inl.h"
#include "heed/ops/tanh-inl.h"

HWY_BEFORE_NAMESPACE();
namespace heed::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

template <class T>
constexpr T kLargestFactor = 20;

/// Computes four vectors of sigmoids r = 1 / (1 + e^(2q + 2k)). With `kDirect`, the arguments are q and k, otherwise
/// e^(2q) and e^(2k), and 1 / r is cut off at 2^30 (float) or 2^60 (double), where tanh is 1.
template <bool kDirect, class D, class V>
HWY_INLINE void four_sigmoids(D d, const V (&q)[4], const V (&k)[4], V (&r)[4]) {
  using T = hn::TFromD<D>;
  if constexpr (kDirect) {
    for (int i = 0; i < 4; ++i) r[i] = sigmoid(d, hn::Mul(hn::Add(q[i], k[i]), hn::Set(d, T(-2))));
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

/// The keys of one sequence, transposed and padded with zeros, and e^(2x) of each element.
template <class T>
struct TransposedKeys {
  T *plain, *exponential;  ///< padded_depth() rows each
  std::int64_t stride;     ///< elements from row to row: at least the number of keys, in whole vectors
  bool small = true;       ///< whether all elements are small enough for products of exponentials

  /// Sets the keys to `keys` rows x of n elements, which begin `x_stride` elements apart. `zeros` points to n zeros.
  HWY_INLINE void set(const T* x, std::int64_t x_stride, std::int64_t keys, std::int64_t n, const T* zeros) {
    transpose_scaled(x, x_stride, keys, n, T(1), zeros, plain, stride);
    small = true;
    const std::int64_t columns = whole_vectors<T>(keys), depth = padded_depth<T>(n);
    for (std::int64_t c = 0; c < depth; ++c) {
      if (c >= n) std::fill_n(plain + c * stride, columns, T(0));
      small = exponentials(plain + c * stride, columns, exponential + c * stride) && small;
    }
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

/// Computes the scores of one query (see additive_scores()) in the way that its elements and those of the keys allow.
/// With factors[c] = -2 v[c], the score is correct up to a constant, the sum of v.
template <class T>
HWY_INLINE void score_query(const PaddedRow<T>& query, const TransposedKeys<T>& keys, const T* factors,
                            std::int64_t depth, std::int64_t seen, T* out) {
  const std::int64_t columns = whole_vectors<T>(seen);
  if (keys.small && query.small)
    additive_scores<false>(query.exponential, keys.exponential, keys.stride, factors, depth, columns, out);
  else
    additive_scores<true>(query.plain, keys.plain, keys.stride, factors, depth, columns, out);
}

/// Adds the gradients that one query causes, from the gradients g of the query's scores over the keys 0 ... `keys` - 1,
/// without the factors that add_gradient() multiplies by: to dq the sum over the keys of g r (1 - r), to the rows of dk
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

/// The keys of one sequence as rows, padded with zeros, for the backward pass; `gradient` holds the sums that
/// additive_backward_row() adds to.
template <class T>
struct KeyRows {
  T *plain, *exponential, *gradient;
  std::int64_t wide;  ///< elements from row to row: at least padded_depth()
  bool small = true;  ///< whether all elements are small enough for products of exponentials

  /// Sets the rows to `keys` rows x of n elements, which begin `x_stride` elements apart, and to zeros up to a multiple
  /// of four rows. `zeros` points to n zeros. Sets the gradients to zero.
  HWY_INLINE void set(const T* x, std::int64_t x_stride, std::int64_t keys, std::int64_t n, const T* zeros) {
    small = true;
    const std::int64_t depth = padded_depth<T>(n);
    for (std::int64_t j = 0; j < (keys + 3) / 4 * 4; ++j) {
      PaddedRow<T> row{plain + j * wide, exponential + j * wide, true};
      row.set(j < keys ? x + j * x_stride : zeros, n, depth);
      small = small && row.small;
      std::fill_n(gradient + j * wide, depth, T(0));
    }
  }
};

/// Computes additive_backward_row() for the first `seen` keys, with gradients g, in the way that the elements of query
/// and keys allow. g must have zeros after the first `seen` elements, up to a multiple of four.
template <class T>
HWY_INLINE void backward_query(const T* g, const PaddedRow<T>& query, const KeyRows<T>& keys, std::int64_t seen,
                               std::int64_t depth, T* dq, T* ds) {
  const std::int64_t whole = (seen + 3) / 4 * 4;
  if (keys.small && query.small)
    additive_backward_row<false>(g, whole, query.exponential, keys.exponential, keys.wide, depth, dq, keys.gradient,
                                 ds);
  else
    additive_backward_row<true>(g, whole, query.plain, keys.plain, keys.wide, depth, dq, keys.gradient, ds);
}

}  // namespace heed::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // HEED_OPS_ADDITIVE_SCORES_INL_H_
