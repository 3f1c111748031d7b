// The hyperbolic tangent as a fraction, and one division for four fractions, for sums of many tangents in SIMD vectors.
// tanh_of() (gates-inl.h), with a division of its own, is more accurate near 0. Each .cpp file with such a kernel
// includes this file once for each instruction set, after <hwy/highway.h>; the unusual include guard below allows that.
#if defined(HEED_OPS_TANH_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef HEED_OPS_TANH_INL_H_
#undef HEED_OPS_TANH_INL_H_
#else
#define HEED_OPS_TANH_INL_H_
#endif

#include <hwy/highway.h>

#include "heed/ops/exp-inl.h"

HWY_BEFORE_NAMESPACE();
namespace heed::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

/// Computes tanh x as a fraction: stores the numerator, sign(x) (1 - e^(-2|x|)), and returns the denominator,
/// 1 + e^(-2|x|), which is in [1, 2]. The caller divides, or combines several fractions into one division. Both are NaN
/// for NaN. In float, the fraction is within 1.2e-7 of tanh x; in double it is accurate to the last bits of 1.
template <class D, class V = hn::Vec<D>>
HWY_INLINE V tanh_fraction(D d, V x, V& numerator) {
  using T = hn::TFromD<D>;
  const V e = exp_nonpositive(d, hn::Mul(hn::Abs(x), hn::Set(d, T(-2))));
  numerator = hn::CopySign(hn::Sub(hn::Set(d, T(1)), e), x);
  return hn::Add(hn::Set(d, T(1)), e);
}

/// Computes r[i] = 1 / c[i] for four vectors with a single division, which takes as long as many multiplications. The
/// product of the four numbers must neither overflow nor underflow.
template <class D, class V>
HWY_INLINE void four_reciprocals(D d, const V (&c)[4], V (&r)[4]) {
  const V low = hn::Mul(c[0], c[1]), high = hn::Mul(c[2], c[3]);
  const V inverse = hn::Div(hn::Set(d, hn::TFromD<D>(1)), hn::Mul(low, high));
  const V inverse_low = hn::Mul(inverse, high), inverse_high = hn::Mul(inverse, low);
  r[0] = hn::Mul(inverse_low, c[1]);
  r[1] = hn::Mul(inverse_low, c[0]);
  r[2] = hn::Mul(inverse_high, c[3]);
  r[3] = hn::Mul(inverse_high, c[2]);
}

}  // namespace heed::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // HEED_OPS_TANH_INL_H_
