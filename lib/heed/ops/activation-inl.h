// The activation functions f of ops/linear.h and their derivatives, for SIMD vectors. Each .cpp file with such a kernel
// includes this file once for each instruction set, after <hwy/highway.h>; the unusual include guard below allows that.
#if defined(HEED_OPS_ACTIVATION_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef HEED_OPS_ACTIVATION_INL_H_
#undef HEED_OPS_ACTIVATION_INL_H_
#else
#define HEED_OPS_ACTIVATION_INL_H_
#endif

#include <numbers>

#include "heed/ops/gates-inl.h"
#include "heed/ops/gelu-inl.h"
#include "heed/ops/linear.h"

HWY_BEFORE_NAMESPACE();
namespace heed::HWY_NAMESPACE {

/// Returns f(z).
template <class T, class D>
HWY_INLINE hn::Vec<D> activate(D d, Activation activation, hn::Vec<D> z) {
  if (activation == Activation::relu) z = hn::Max(z, hn::Zero(d));
  if (activation == Activation::swish) z = hn::Div(z, hn::Add(hn::Set(d, T(1)), hn::Exp(d, hn::Neg(z))));
  if (activation == Activation::tanh) z = tanh_of(d, z);
  if (activation == Activation::gelu) {
    auto bell = z;
    z = hn::Mul(z, normal_distribution<T>(d, z, bell));
  }
  return z;
}

/// Returns the derivative f'(z) of gelu or swish, and stores f(z) in `value`.
template <class T, class D>
HWY_INLINE hn::Vec<D> smooth_derivative(D d, Activation activation, hn::Vec<D> z, hn::Vec<D>& value) {
  if (activation == Activation::gelu) {
    // The derivative of z Phi(z) is Phi(z) + z phi(z), where phi(z) = exp(-z^2 / 2) / sqrt(2 pi) is the density.
    auto bell = z;
    const auto distribution = normal_distribution<T>(d, z, bell);
    const auto density = hn::Mul(bell, hn::Set(d, T(0.5 * std::numbers::sqrt2 * std::numbers::inv_sqrtpi)));
    value = hn::Mul(z, distribution);
    return hn::MulAdd(z, density, distribution);
  }
  const auto one = hn::Set(d, T(1));
  const auto sigmoid = hn::Div(one, hn::Add(one, hn::Exp(d, hn::Neg(z))));
  // The derivative of z s(z) is s + z s (1 - s), where s is the sigmoid of z.
  value = hn::Mul(z, sigmoid);
  return hn::MulAdd(value, hn::Sub(one, sigmoid), sigmoid);
}

}  // namespace heed::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // HEED_OPS_ACTIVATION_INL_H_
