// Dot products of queries with the rows of a key/value cache, for inference. A row of the result must not depend on the
// other rows, bit for bit, so the order of the additions is the same for any number of rows. Each .cpp file with
// kernels includes this file once for each instruction set; the unusual include guard below allows that.
#if defined(HEED_OPS_DOT_ROWS_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef HEED_OPS_DOT_ROWS_INL_H_
#undef HEED_OPS_DOT_ROWS_INL_H_
#else
#define HEED_OPS_DOT_ROWS_INL_H_
#endif

#include <hwy/highway.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <type_traits>

HWY_BEFORE_NAMESPACE();
namespace heed::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

/// Adds up the elements of each of the four vectors a, b, c and e. Writes the four sums, times `factor`, to `out`.
template <class D, class V, class T>
HWY_INLINE void sum_four(D d, V a, V b, V c, V e, T factor, T* HWY_RESTRICT out) {
#if HWY_TARGET != HWY_SCALAR
  if constexpr (sizeof(T) == 4) {
    // The vectors are added up in blocks of 128 bits (4 elements). The interleaving steps transpose the 4 x 4 elements
    // of a block and add the transposed rows. Each block of `blocks` then holds four partial sums, one of each vector
    // a, b, c and e.
    const V ac = hn::Add(hn::InterleaveLower(d, a, c), hn::InterleaveUpper(d, a, c));
    const V be = hn::Add(hn::InterleaveLower(d, b, e), hn::InterleaveUpper(d, b, e));
    const V blocks = hn::Add(hn::InterleaveLower(d, ac, be), hn::InterleaveUpper(d, ac, be));
    HWY_ALIGN T parts[HWY_MAX_BYTES / sizeof(T)];
    hn::Store(blocks, d, parts);
    const hn::CappedTag<T, 4> four;
    auto sum = hn::Load(four, parts);
    for (std::size_t i = 4; i < hn::Lanes(d); i += 4) sum = hn::Add(sum, hn::Load(four, parts + i));
    hn::StoreU(hn::Mul(sum, hn::Set(four, factor)), four, out);
    return;
  }
#endif
  out[0] = factor * hn::GetLane(hn::SumOfLanes(d, a));
  out[1] = factor * hn::GetLane(hn::SumOfLanes(d, b));
  out[2] = factor * hn::GetLane(hn::SumOfLanes(d, c));
  out[3] = factor * hn::GetLane(hn::SumOfLanes(d, e));
}

/// Loads a vector of numbers that are stored either as floating-point numbers or as integers of 16 or 8 bits. Integers
/// are converted to floating-point numbers.
template <class D, class Stored>
HWY_INLINE hn::Vec<D> load_stored(D d, const Stored* from) {
  if constexpr (std::is_same_v<hn::TFromD<D>, Stored>) {
    return hn::LoadU(d, from);
  } else {
    const hn::Rebind<Stored, D> integers;
    const hn::Rebind<std::int32_t, D> words;
    return hn::ConvertTo(d, hn::PromoteTo(words, hn::LoadU(integers, from)));
  }
}

/// Computes out [R, 4]: `factor` times the dot products of R rows of x with the four rows w; all rows have k elements.
/// The additions have the same order for every R: first every lane of the vectors is summed by itself, then the lanes
/// are added together, then the elements after the last full vector. `Stored`, the type of w's elements, is T or an
/// integer.
template <int R, class T, class Stored>
HWY_INLINE void dot_four(std::int64_t k, const T* HWY_RESTRICT x, std::int64_t x_stride, const Stored* const w[4],
                         T factor, T* HWY_RESTRICT out, std::int64_t out_stride) {
  const hn::ScalableTag<T> d;
  const hn::CappedTag<T, 1> one;
  using V = hn::Vec<decltype(d)>;
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
  V s[R][4];
  for (int r = 0; r < R; ++r)
    for (int j = 0; j < 4; ++j) s[r][j] = hn::Zero(d);
  const Stored *w0 = w[0], *w1 = w[1], *w2 = w[2], *w3 = w[3];
  std::int64_t i = 0;
  for (; i + lanes <= k; i += lanes) {
    const V b0 = load_stored(d, w0 + i), b1 = load_stored(d, w1 + i), b2 = load_stored(d, w2 + i),
            b3 = load_stored(d, w3 + i);
    for (int r = 0; r < R; ++r) {
      const V a = hn::LoadU(d, x + r * x_stride + i);
      s[r][0] = hn::MulAdd(a, b0, s[r][0]);
      s[r][1] = hn::MulAdd(a, b1, s[r][1]);
      s[r][2] = hn::MulAdd(a, b2, s[r][2]);
      s[r][3] = hn::MulAdd(a, b3, s[r][3]);
    }
  }
  for (int r = 0; r < R; ++r) sum_four(d, s[r][0], s[r][1], s[r][2], s[r][3], factor, out + r * out_stride);
  for (; i < k; ++i)
    for (int r = 0; r < R; ++r)
      for (int j = 0; j < 4; ++j)
        out[r * out_stride + j] =
            std::fma(factor * x[r * x_stride + i], hn::GetLane(load_stored(one, w[j] + i)), out[r * out_stride + j]);
}

/// Computes the dot products of any number of rows of x with the four rows w, by calls of dot_four().
template <class T, class Stored>
HWY_INLINE void dot_four_rows(std::int64_t rows, std::int64_t k, const T* x, std::int64_t x_stride,
                              const Stored* const w[4], T factor, T* out, std::int64_t out_stride) {
  for (; rows >= 3; rows -= 3, x += 3 * x_stride, out += 3 * out_stride)
    dot_four<3>(k, x, x_stride, w, factor, out, out_stride);
  if (rows == 2) dot_four<2>(k, x, x_stride, w, factor, out, out_stride);
  if (rows == 1) dot_four<1>(k, x, x_stride, w, factor, out, out_stride);
}

}  // namespace heed::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // HEED_OPS_DOT_ROWS_INL_H_
