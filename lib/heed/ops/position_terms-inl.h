// The loops that add the terms of positions to one row of attention logits or weights (see position_bias.h). The row of
// query i holds a number for each key j. Each .cpp file with kernels includes this file once for each instruction set;
// the unusual include guard below allows that.
#if defined(HEED_OPS_POSITION_TERMS_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef HEED_OPS_POSITION_TERMS_INL_H_
#undef HEED_OPS_POSITION_TERMS_INL_H_
#else
#define HEED_OPS_POSITION_TERMS_INL_H_
#endif

#include <hwy/highway.h>

#include <algorithm>
#include <cstdint>

HWY_BEFORE_NAMESPACE();
namespace heed::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

/// Returns the mask of the first n lanes; n may also be negative or above the number of lanes.
template <class D>
HWY_INLINE hn::Mask<D> first_lanes(D d, std::int64_t n) {
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
  return hn::FirstN(d, static_cast<std::size_t>(std::clamp<std::int64_t>(n, 0, lanes)));
}

/// Copies the first n elements of a row, and on to the end of the last vector.
template <class T>
HWY_INLINE void copy_vectors(const T* HWY_RESTRICT from, std::int64_t n, T* HWY_RESTRICT to) {
  const hn::ScalableTag<T> d;
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
  for (std::int64_t j = 0; j < n; j += lanes) hn::StoreU(hn::LoadU(d, from + j), d, to + j);
}

/// Computes to[j] += factor x[j] for j < n. Where `whole` is true, also for the elements up to the end of the last
/// vector; otherwise those stay as they are.
template <bool whole, class T>
HWY_INLINE void add_scaled(const T* HWY_RESTRICT x, T factor, std::int64_t n, T* HWY_RESTRICT to) {
  const hn::ScalableTag<T> d;
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
  for (std::int64_t j = 0; j < n; j += lanes) {
    const auto sum = hn::MulAdd(hn::LoadU(d, x + j), hn::Set(d, factor), hn::LoadU(d, to + j));
    if (whole || j + lanes <= n)
      hn::StoreU(sum, d, to + j);
    else
      hn::BlendedStore(sum, first_lanes(d, n - j), d, to + j);
  }
}

/// Adds to s[j], for each key j < seen, the number of the key's distance: products[clip(j - shift, 0, count - 1)]. The
/// query i has shift = i - k, where k is the distance from which on all keys share a number. Sets the elements after
/// s[seen - 1] to zero: those up to `columns`, and on to the end of the last vector. A vector before `products` is
/// read, and does not count.
template <class T>
HWY_INLINE void add_by_distance(const T* products, std::int64_t count, std::int64_t shift, T* s, std::int64_t seen,
                                std::int64_t columns) {
  const hn::ScalableTag<T> d;
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
  const auto lowest = hn::Set(d, products[0]), highest = hn::Set(d, products[count - 1]);
  std::int64_t j = 0;
  for (; j < seen; j += lanes) {
    // Lane 0 of the vector gets the number products[at], unless that is before the first or after the last number.
    const std::int64_t at = std::clamp(j - shift, -lanes, count);
    auto product = hn::IfThenElse(first_lanes(d, -at), lowest, hn::LoadU(d, products + at));
    product = hn::IfThenElse(first_lanes(d, count - at), product, highest);
    const auto sum = hn::Add(hn::LoadU(d, s + j), product);
    hn::StoreU(hn::IfThenElseZero(first_lanes(d, seen - j), sum), d, s + j);
  }
  for (; j < columns; j += lanes) hn::StoreU(hn::Zero(d), d, s + j);
}

/// Returns the sum of s[begin ... end - 1], or 0 where end <= begin.
template <class T>
HWY_INLINE T sum_range(const T* s, std::int64_t begin, std::int64_t end) {
  const hn::ScalableTag<T> d;
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
  if (end <= begin) return 0;
  auto sum = hn::Zero(d);
  for (std::int64_t j = begin; j < end; j += lanes)
    sum = hn::Add(sum, hn::IfThenElseZero(first_lanes(d, end - j), hn::LoadU(d, s + j)));
  return hn::GetLane(hn::SumOfLanes(d, sum));
}

/// Adds up the elements s[j], j < seen, of the keys that share a distance: sums[c] is the sum of s[j] over all j with
/// clip(j - shift, 0, count - 1) = c, for c < count. `sums` and `s` do not overlap, but may follow each other. Up to a
/// vector after s[seen - 1] is read.
template <class T>
HWY_INLINE void sum_by_distance(const T* s, std::int64_t seen, std::int64_t shift, std::int64_t count, T* sums) {
  const hn::ScalableTag<T> d;
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
  const std::int64_t last = count - 1;
  for (std::int64_t c = 0; c < count; c += lanes) hn::BlendedStore(hn::Zero(d), first_lanes(d, count - c), d, sums + c);
  const std::int64_t end = std::min(last, seen - shift);
  for (std::int64_t c = std::max<std::int64_t>(1, -shift); c < end; c += lanes)
    hn::BlendedStore(hn::LoadU(d, s + c + shift), first_lanes(d, end - c), d, sums + c);
  sums[0] = sum_range(s, 0, std::min(shift + 1, seen));
  sums[last] = sum_range(s, std::max<std::int64_t>(shift + last, 0), seen);
}

}  // namespace heed::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // HEED_OPS_POSITION_TERMS_INL_H_
