// The two activation functions of gates in recurrent cells: the sigmoid function and tanh. Each .cpp file with such a
// kernel includes this file once for each instruction set, after <hwy/highway.h>; the unusual include guard below
// allows that.
#if defined(HEED_OPS_GATES_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef HEED_OPS_GATES_INL_H_
#undef HEED_OPS_GATES_INL_H_
#else
#define HEED_OPS_GATES_INL_H_
#endif

#include "heed/ops/exp-inl.h"

HWY_BEFORE_NAMESPACE();
namespace heed::HWY_NAMESPACE {

/// Returns the sigmoid function 1 / (1 + e^-x), and NaN for NaN. The exponential e = e^-|x| never overflows: the result
/// is 1 / (1 + e) for x >= 0 and e / (1 + e) for x < 0.
template <class D, class V = hn::Vec<D>>
HWY_INLINE V sigmoid(D d, V x) {
  const V one = hn::Set(d, hn::TFromD<D>(1));
  const V e = exp_nonpositive(d, hn::Neg(hn::Abs(x)));
  return hn::Div(hn::IfThenElse(hn::Lt(x, hn::Zero(d)), e, one), hn::Add(one, e));
}

/// Returns tanh(x), and NaN for NaN. With e = e^-2|x|, tanh |x| is (1 - e) / (1 + e); near 0 the difference 1 - e would
/// lose digits, so that for |x| < 0.625 the result is x times a polynomial in x^2 (Cephes, tanhf.c: relative error
/// 2e-7).
template <class D, class V = hn::Vec<D>>
HWY_INLINE V tanh_of(D d, V x) {
  if constexpr (sizeof(hn::TFromD<D>) == 8) {
    return hn::Tanh(d, x);
  } else {
    const V one = hn::Set(d, 1.0f), size = hn::Abs(x);
    const V e = exp_nonpositive(d, hn::Mul(hn::Set(d, -2.0f), size));
    const V large = hn::CopySign(hn::Div(hn::Sub(one, e), hn::Add(one, e)), x);
    const V square = hn::Mul(x, x);
    V p = hn::MulAdd(square, hn::Set(d, -5.70498872745e-3f), hn::Set(d, 2.06390887954e-2f));
    p = hn::MulAdd(p, square, hn::Set(d, -5.37397155531e-2f));
    p = hn::MulAdd(p, square, hn::Set(d, 1.33314422036e-1f));
    p = hn::MulAdd(p, square, hn::Set(d, -3.33332819422e-1f));
    const V small = hn::MulAdd(hn::Mul(p, square), x, x);
    return hn::IfThenElse(hn::Lt(size, hn::Set(d, 0.625f)), small, large);
  }
}

}  // namespace heed::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // HEED_OPS_GATES_INL_H_
