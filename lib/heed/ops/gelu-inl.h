// The distribution function of the standard normal distribution, for SIMD vectors. The activation function gelu needs
// it. Each .cpp file with such a kernel includes this file once for each instruction set, after <hwy/highway.h>; the
// unusual include guard below allows that.
#if defined(HEED_OPS_GELU_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef HEED_OPS_GELU_INL_H_
#undef HEED_OPS_GELU_INL_H_
#else
#define HEED_OPS_GELU_INL_H_
#endif

#include <iterator>
#include <numbers>
#include <type_traits>

#include "heed/ops/simd-inl.h"

#ifndef HEED_OPS_GELU_TABLE
#define HEED_OPS_GELU_TABLE
namespace heed {
#include "heed/ops/gelu_table.inc"
}
#endif

HWY_BEFORE_NAMESPACE();
namespace heed::HWY_NAMESPACE {

/// Returns the standard normal distribution function Phi(z), accurate to the last bits of T, and stores exp(-z^2 / 2)
/// in `bell`. The formula for the tail 1 - Phi(|z|) = erfc(w) / 2, with w = |z| / sqrt 2 and t = 1 / (1 + w / 2), is
/// exp(-w^2) t Q(2 t - 1) / 2, where Q is a polynomial (gelu_table.inc).
template <class T, class D, class V>
HWY_INLINE V normal_distribution(D d, V z, V& bell) {
  const auto* powers = []() HWY_ATTR {
    if constexpr (std::is_same_v<T, float>)
      return &kTailFloat;
    else
      return &kTailDouble;
  }();
  const auto one = hn::Set(d, T(1));
  const auto t = hn::Div(one, hn::MulAdd(hn::Abs(z), hn::Set(d, T(std::numbers::sqrt2 / 4)), one));
  const auto u = hn::Sub(hn::Add(t, t), one);
  auto q = hn::Set(d, (*powers)[std::size(*powers) - 1]);
  for (std::size_t i = std::size(*powers) - 1; i-- > 0;) q = hn::MulAdd(q, u, hn::Set(d, (*powers)[i]));
  bell = hn::Exp(d, hn::Mul(hn::Mul(z, z), hn::Set(d, T(-0.5))));
  const auto tail = hn::Mul(hn::Mul(bell, hn::Mul(t, q)), hn::Set(d, T(0.5)));
  return hn::IfThenElse(hn::Lt(z, hn::Zero(d)), tail, hn::Sub(one, tail));
}

}  // namespace heed::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // HEED_OPS_GELU_INL_H_
