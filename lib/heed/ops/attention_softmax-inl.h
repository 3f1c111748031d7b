// The softmax of one row of attention logits. The row's memory must reach to the end of its last SIMD vector, because
// the kernel reads and writes whole vectors. Each .cpp file with kernels includes this file once for each instruction
// set; the unusual include guard below allows that.
#if defined(HEED_OPS_ATTENTION_SOFTMAX_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef HEED_OPS_ATTENTION_SOFTMAX_INL_H_
#undef HEED_OPS_ATTENTION_SOFTMAX_INL_H_
#else
#define HEED_OPS_ATTENTION_SOFTMAX_INL_H_
#endif

#include <hwy/highway.h>

#include <cstdint>
#include <limits>

#include "heed/ops/exp-inl.h"

HWY_BEFORE_NAMESPACE();
namespace heed::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

/// Computes s = softmax(s) in place over the first `seen` > 0 elements, the logits of the keys that the query may see.
/// Sets the other elements of the row to zero: those up to `columns`, and on to the end of the last vector.
template <class T>
HWY_INLINE void attention_softmax_row(T* HWY_RESTRICT s, std::int64_t seen, std::int64_t columns) {
  const hn::ScalableTag<T> d;
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
  const std::int64_t full = seen / lanes * lanes;
  auto largest = hn::Set(d, -std::numeric_limits<T>::infinity());
  for (std::int64_t i = 0; i < full; i += lanes) largest = hn::Max(largest, hn::LoadU(d, s + i));
  const auto rest = hn::FirstN(d, static_cast<std::size_t>(seen - full));
  if (full < seen) largest = hn::Max(largest, hn::IfThenElse(rest, hn::LoadU(d, s + full), largest));
  largest = hn::MaxOfLanes(d, largest);
  auto sum = hn::Zero(d);
  for (std::int64_t i = 0; i < full; i += lanes) {
    const auto e = exp_nonpositive(d, hn::Sub(hn::LoadU(d, s + i), largest));
    sum = hn::Add(sum, e);
    hn::StoreU(e, d, s + i);
  }
  if (full < seen) {
    const auto e = hn::IfThenElseZero(rest, exp_nonpositive(d, hn::Sub(hn::LoadU(d, s + full), largest)));
    sum = hn::Add(sum, e);
    hn::StoreU(e, d, s + full);
  }
  const auto inverse = hn::Div(hn::Set(d, T(1)), hn::SumOfLanes(d, sum));
  std::int64_t i = 0;
  for (; i < seen; i += lanes) hn::StoreU(hn::Mul(hn::LoadU(d, s + i), inverse), d, s + i);
  for (; i < columns; i += lanes) hn::StoreU(hn::Zero(d), d, s + i);
}

}  // namespace heed::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // HEED_OPS_ATTENTION_SOFTMAX_INL_H_
