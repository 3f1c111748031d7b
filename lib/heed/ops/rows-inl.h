// Row kernels that several ops share: the sum and the maximum of a row, dropout of a vector, softmax and normalisation
// of a row. Each .cpp file with kernels includes this file once for each instruction set, after
// <hwy/highway.h>; the unusual include guard below allows that.
#if defined(HEED_OPS_ROWS_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef HEED_OPS_ROWS_INL_H_
#undef HEED_OPS_ROWS_INL_H_
#else
#define HEED_OPS_ROWS_INL_H_
#endif

#include <algorithm>
#include <cmath>
#include <limits>

#include "heed/ops/dropout_mask.h"
#include "heed/ops/row_norm.h"
#include "heed/ops/simd-inl.h"

HWY_BEFORE_NAMESPACE();
namespace heed::HWY_NAMESPACE {

/// Computes two sums over i = 0 .. n-1 in one pass: body(d, i, s, t) adds the vectors at i to the sums s and t. Each
/// sum is kept in four vectors in turn, so that an addition need not wait for the addition before.
template <class T, class Body>
HWY_INLINE void sum_pair_over(std::int64_t n, T& sum_s, T& sum_t, Body body) {
  const hn::ScalableTag<T> d;
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
  auto s0 = hn::Zero(d), s1 = s0, s2 = s0, s3 = s0, t0 = s0, t1 = s0, t2 = s0, t3 = s0;
  std::int64_t i = 0;
  for (; i + 4 * lanes <= n; i += 4 * lanes) {
    body(d, i, s0, t0);
    body(d, i + lanes, s1, t1);
    body(d, i + 2 * lanes, s2, t2);
    body(d, i + 3 * lanes, s3, t3);
  }
  for (; i + lanes <= n; i += lanes) body(d, i, s0, t0);
  sum_s = hn::GetLane(hn::SumOfLanes(d, hn::Add(hn::Add(s0, s1), hn::Add(s2, s3))));
  sum_t = hn::GetLane(hn::SumOfLanes(d, hn::Add(hn::Add(t0, t1), hn::Add(t2, t3))));
  const hn::CappedTag<T, 1> one;
  for (; i < n; ++i) {
    auto s = hn::Zero(one), t = s;
    body(one, i, s, t);
    sum_s += hn::GetLane(s);
    sum_t += hn::GetLane(t);
  }
}

/// Returns the sum over i = 0 .. n-1 of the values that body(d, i) computes, a vector of values at a time.
template <class T, class Body>
HWY_INLINE T sum_over(std::int64_t n, Body body) {
  const hn::ScalableTag<T> d;
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
  auto s0 = hn::Zero(d), s1 = s0, s2 = s0, s3 = s0;
  std::int64_t i = 0;
  for (; i + 4 * lanes <= n; i += 4 * lanes) {
    s0 = hn::Add(s0, body(d, i));
    s1 = hn::Add(s1, body(d, i + lanes));
    s2 = hn::Add(s2, body(d, i + 2 * lanes));
    s3 = hn::Add(s3, body(d, i + 3 * lanes));
  }
  for (; i + lanes <= n; i += lanes) s0 = hn::Add(s0, body(d, i));
  T sum = hn::GetLane(hn::SumOfLanes(d, hn::Add(hn::Add(s0, s1), hn::Add(s2, s3))));
  const hn::CappedTag<T, 1> one;
  for (; i < n; ++i) sum += hn::GetLane(body(one, i));
  return sum;
}

/// Returns the largest of x[0 .. n), or minus infinity where n is 0.
template <class T>
HWY_INLINE T max_over(const T* x, std::int64_t n) {
  const hn::ScalableTag<T> d;
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
  const auto lowest = hn::Set(d, -std::numeric_limits<T>::infinity());
  auto m0 = lowest, m1 = lowest;
  std::int64_t i = 0;
  for (; i + 2 * lanes <= n; i += 2 * lanes) {
    m0 = hn::Max(m0, hn::LoadU(d, x + i));
    m1 = hn::Max(m1, hn::LoadU(d, x + i + lanes));
  }
  for (; i + lanes <= n; i += lanes) m0 = hn::Max(m0, hn::LoadU(d, x + i));
  T largest = hn::GetLane(hn::MaxOfLanes(d, hn::Max(m0, m1)));
  for (; i < n; ++i) largest = x[i] > largest ? x[i] : largest;
  return largest;
}

/// Loads one byte for each lane from p and converts the bytes to floating-point numbers.
template <class D>
HWY_INLINE hn::Vec<D> load_bytes(D d, const std::uint8_t* p) {
  const hn::Rebind<std::int32_t, D> d_int;
  const auto bytes = hn::PromoteTo(d_int, hn::LoadU(hn::Rebind<std::uint8_t, D>(), p));
  if constexpr (std::is_same_v<hn::TFromD<D>, double>)
    return hn::PromoteTo(d, bytes);
  else
    return hn::ConvertTo(d, bytes);
}

/// Applies dropout to the vector v, whose first element has index i in the mask: dropped elements become 0, the others
/// are multiplied by mask.scale. Without a mask, returns v.
template <class D, class T>
HWY_INLINE hn::Vec<D> drop(D d, hn::Vec<D> v, const DropoutMask<T>& mask, std::int64_t i) {
  if (!mask.kept) return v;
  return hn::Mul(v, hn::Mul(load_bytes(d, mask.kept + i), hn::Set(d, mask.scale)));
}

/// Computes y = softmax(y) in place for one row of n elements. A row of minus infinities becomes a row of zeros.
template <class T>
HWY_INLINE void softmax_row(T* HWY_RESTRICT y, std::int64_t n) {
  const T largest = max_over(y, n);
  if (largest == -std::numeric_limits<T>::infinity()) {
    std::fill_n(y, n, T(0));
    return;
  }
  const T sum = sum_over<T>(n, [&](auto d, std::int64_t i) HWY_ATTR {
    const auto e = hn::Exp(d, hn::Sub(hn::LoadU(d, y + i), hn::Set(d, largest)));
    hn::StoreU(e, d, y + i);
    return e;
  });
  for_each_vector<T>(n, [&](auto d, std::int64_t i, auto load, auto store)
                            HWY_ATTR { store(hn::Mul(load(d, y + i), hn::Set(d, 1 / sum)), d, y + i); });
}

/// Computes the backward pass of softmax for one row: dx += y (dy - sum of y dy), where y is the softmax's result.
template <class T>
HWY_INLINE void softmax_row_backward(const T* HWY_RESTRICT y, const T* HWY_RESTRICT dy, T* HWY_RESTRICT dx,
                                     std::int64_t n) {
  const T dot = sum_over<T>(
      n, [&](auto d, std::int64_t i) HWY_ATTR { return hn::Mul(hn::LoadU(d, y + i), hn::LoadU(d, dy + i)); });
  for_each_vector<T>(n, [&](auto d, std::int64_t i, auto load, auto store) HWY_ATTR {
    const auto centred = hn::Sub(load(d, dy + i), hn::Set(d, dot));
    store(hn::MulAdd(load(d, y + i), centred, load(d, dx + i)), d, dx + i);
  });
}

/// Adds dropout(x) to n elements: to += x * kept * scale, where `kept` and `scale` are members of the mask. Without a
/// mask: to += x.
template <class T>
HWY_INLINE void add_dropped(const T* HWY_RESTRICT x, const DropoutMask<T>& mask, T* HWY_RESTRICT to, std::int64_t n) {
  for_each_vector<T>(n, [&](auto d, std::int64_t i, auto load, auto store)
                            HWY_ATTR { store(hn::Add(load(d, to + i), drop(d, load(d, x + i), mask, i)), d, to + i); });
}

/// The statistics of a row that normalise_row() saves for the backward pass: for layer normalisation the mean and 1 /
/// sqrt(variance + epsilon), for RMS normalisation 0 and 1 / sqrt(mean(x^2) + epsilon).
template <class T>
struct RowStatistics {
  T mean, inverse_deviation;
};

/// Returns what the caller of normalise_row() adds up over the elements of a row: x, or x^2 for RMS normalisation.
template <RowNorm kind, class V>
HWY_INLINE V summand(V x) {
  if constexpr (kind == RowNorm::rms)
    return hn::Mul(x, x);
  else
    return x;
}

/// Subtracts the mean of a row from the vector x, for layer normalisation; RMS normalisation does not centre a row.
template <RowNorm kind, class D, class T>
HWY_INLINE hn::Vec<D> centre(D d, hn::Vec<D> x, T mean) {
  if constexpr (kind == RowNorm::rms)
    return x;
  else
    return hn::Sub(x, hn::Set(d, mean));
}

/// Normalises one row x of n elements, for which the caller has computed the sum of summand(x). Layer normalisation: y
/// = (x - mean) / sqrt(variance + epsilon) * scale + bias. RMS normalisation: y = x / sqrt(mean(x^2) + epsilon) *
/// scale; `bias` is not read. Returns the row's statistics for the backward pass. y may be the same array as x.
template <RowNorm kind, class T>
HWY_INLINE RowStatistics<T> normalise_row(const T* x, T sum, const T* HWY_RESTRICT scale, const T* HWY_RESTRICT bias,
                                          T epsilon, T* y, std::int64_t n) {
  T mean = 0, squares = sum;
  if constexpr (kind == RowNorm::layer) {
    mean = sum / static_cast<T>(n);
    squares = sum_over<T>(n, [&](auto d, std::int64_t i) HWY_ATTR {
      const auto centred = centre<kind>(d, hn::LoadU(d, x + i), mean);
      return hn::Mul(centred, centred);
    });
  }
  const T inverse = 1 / std::sqrt(squares / static_cast<T>(n) + epsilon);
  for_each_vector<T>(n, [&](auto d, std::int64_t i, auto load, auto store) HWY_ATTR {
    const auto normal = hn::Mul(centre<kind>(d, load(d, x + i), mean), hn::Set(d, inverse));
    if constexpr (kind == RowNorm::rms)
      store(hn::Mul(normal, load(d, scale + i)), d, y + i);
    else
      store(hn::MulAdd(normal, load(d, scale + i), load(d, bias + i)), d, y + i);
  });
  return {mean, inverse};
}

/// Computes the backward pass of layer normalisation or RMS normalisation for one row. Adds to dscale and dbias where
/// these are not null, and passes each vector of dx to emit(d, i, dx), since ops use dx differently. With deviation =
/// sqrt(variance + epsilon), z = (x - mean) / deviation and g = dy scale, the formula for layer normalisation is dx =
/// (g - mean(g) - z mean(g z)) / deviation. For RMS normalisation, deviation = sqrt(mean(x^2) + epsilon), z = x /
/// deviation and dx = (g - z mean(g z)) / deviation.
template <RowNorm kind, class T, class Emit>
HWY_INLINE void normalise_row_backward(const T* HWY_RESTRICT x, RowStatistics<T> row, const T* HWY_RESTRICT scale,
                                       const T* HWY_RESTRICT dy, T* HWY_RESTRICT dscale, T* HWY_RESTRICT dbias,
                                       std::int64_t n, Emit emit) {
  const auto normal = [&](auto d, std::int64_t i) HWY_ATTR {
    return hn::Mul(centre<kind>(d, hn::LoadU(d, x + i), row.mean), hn::Set(d, row.inverse_deviation));
  };
  T sum_g = 0, sum_gn = 0;
  sum_pair_over<T>(n, sum_g, sum_gn, [&](auto d, std::int64_t i, auto& s, auto& t) HWY_ATTR {
    const auto nx = normal(d, i), g = hn::LoadU(d, dy + i), gs = hn::Mul(g, hn::LoadU(d, scale + i));
    if (dscale) hn::StoreU(hn::MulAdd(g, nx, hn::LoadU(d, dscale + i)), d, dscale + i);
    if (dbias) hn::StoreU(hn::Add(g, hn::LoadU(d, dbias + i)), d, dbias + i);
    if constexpr (kind == RowNorm::layer) s = hn::Add(s, gs);
    t = hn::MulAdd(gs, nx, t);
  });
  const T mean_g = sum_g / static_cast<T>(n), mean_gn = sum_gn / static_cast<T>(n);
  for_each_vector<T>(n, [&](auto d, std::int64_t i, auto load, auto) HWY_ATTR {
    const auto gs = hn::Mul(load(d, dy + i), load(d, scale + i));
    if constexpr (kind == RowNorm::rms) {
      const auto projected = hn::NegMulAdd(normal(d, i), hn::Set(d, mean_gn), gs);
      emit(d, i, hn::Mul(projected, hn::Set(d, row.inverse_deviation)));
    } else {
      const auto centred = hn::Sub(gs, hn::MulAdd(normal(d, i), hn::Set(d, mean_gn), hn::Set(d, mean_g)));
      emit(d, i, hn::Mul(centred, hn::Set(d, row.inverse_deviation)));
    }
  });
}

}  // namespace heed::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // HEED_OPS_ROWS_INL_H_
