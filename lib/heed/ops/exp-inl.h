// The exponential function for softmaxes. Each .cpp file with kernels includes this file once for each instruction set;
// the unusual include guard below allows that.
#if defined(HEED_OPS_EXP_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef HEED_OPS_EXP_INL_H_
#undef HEED_OPS_EXP_INL_H_
#else
#define HEED_OPS_EXP_INL_H_
#endif

#include <hwy/contrib/math/math-inl.h>
#include <hwy/highway.h>

#include <cstdint>

HWY_BEFORE_NAMESPACE();
namespace heed::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

/// Returns e^x for x <= 0, and NaN for NaN. In float, the result is 0 for x < -87, where e^x is a denormal number, and
/// the function takes half the time of Highway's Exp, which covers all x. For float, let
/// n = round(x / ln 2) and r = x - n ln 2. The result is 2^n times the Taylor polynomial of e^r of degree 7; since |r|
/// <= ln 2 / 2, the first term that is left out is r^8 / 8! < 6e-9.
template <class D, class V = hn::Vec<D>>
HWY_INLINE V exp_nonpositive(D d, V x) {
  if constexpr (sizeof(hn::TFromD<D>) == 8) {
    return hn::Exp(d, x);
  } else {
    const hn::RebindToSigned<D> d_int;
    // Adding 1.5 * 2^23 rounds x / ln 2 to the integer n and leaves n in the lowest bits of the float. Adding 127 to
    // these bits and shifting the sum left by 23 gives the bits of the float 2^n, whose exponent field is n + 127.
    const V magic = hn::Set(d, 12582912.0f);
    const V shifted = hn::MulAdd(x, hn::Set(d, 1.44269504f), magic);
    const V n = hn::Sub(shifted, magic);
    const V power = hn::BitCast(d, hn::ShiftLeft<23>(hn::Add(hn::BitCast(d_int, shifted), hn::Set(d_int, 127))));
    // ln 2 is subtracted in two parts; the first part, 0.693359375, has so few bits that the product with n is exact.
    const V r = hn::NegMulAdd(n, hn::Set(d, -2.12194440e-4f), hn::NegMulAdd(n, hn::Set(d, 0.693359375f), x));
    V p = hn::MulAdd(r, hn::Set(d, 1.0f / 5040), hn::Set(d, 1.0f / 720));
    p = hn::MulAdd(r, p, hn::Set(d, 1.0f / 120));
    p = hn::MulAdd(r, p, hn::Set(d, 1.0f / 24));
    p = hn::MulAdd(r, p, hn::Set(d, 1.0f / 6));
    p = hn::MulAdd(r, p, hn::Set(d, 0.5f));
    p = hn::MulAdd(r, p, hn::Set(d, 1.0f));
    p = hn::MulAdd(r, p, hn::Set(d, 1.0f));
    return hn::IfThenZeroElse(hn::Lt(x, hn::Set(d, -87.0f)), hn::Mul(p, power));
  }
}

}  // namespace heed::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // HEED_OPS_EXP_INL_H_
