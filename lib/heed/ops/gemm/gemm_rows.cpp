#include "heed/ops/gemm/gemm_rows.h"

#include <algorithm>
#include <type_traits>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "heed/ops/gemm/gemm_rows.cpp"
#include <hwy/foreach_target.h>  // IWYU pragma: keep
#include <hwy/highway.h>

#include "heed/ops/simd-inl.h"

HWY_BEFORE_NAMESPACE();
namespace heed::HWY_NAMESPACE {

/// The sums of four vectors' lanes.
template <class D, class V, class T>
HWY_INLINE void sum_four(D d, V a, V b, V c, V e, T* sums) {
#if HWY_TARGET != HWY_SCALAR
  if constexpr (sizeof(T) == 4) {
    // A transpose of 4 x 4 within each 128-bit block, adding on the way.
    const V ac = hn::Add(hn::InterleaveLower(d, a, c), hn::InterleaveUpper(d, a, c));
    const V be = hn::Add(hn::InterleaveLower(d, b, e), hn::InterleaveUpper(d, b, e));
    const V blocks = hn::Add(hn::InterleaveLower(d, ac, be), hn::InterleaveUpper(d, ac, be));
    HWY_ALIGN T parts[HWY_MAX_BYTES / sizeof(T)];
    hn::Store(blocks, d, parts);
    const hn::CappedTag<T, 4> four;
    auto sum = hn::Load(four, parts);
    for (std::size_t i = 4; i < hn::Lanes(d); i += 4) sum = hn::Add(sum, hn::Load(four, parts + i));
    hn::StoreU(sum, four, sums);
    return;
  }
#endif
  sums[0] = hn::GetLane(hn::SumOfLanes(d, a));
  sums[1] = hn::GetLane(hn::SumOfLanes(d, b));
  sums[2] = hn::GetLane(hn::SumOfLanes(d, c));
  sums[3] = hn::GetLane(hn::SumOfLanes(d, e));
}

/// R rows of x by 4 rows of W, each pair's products summed lane by lane, the lanes at the end, then what is left of k:
/// the same for every R.
template <int R, class T>
HWY_INLINE void rows_by_four(std::int64_t k, const T* HWY_RESTRICT x, std::int64_t x_stride, const T* HWY_RESTRICT w,
                             std::int64_t w_stride, T* sums) {
  const hn::ScalableTag<T> d;
  using V = hn::Vec<decltype(d)>;
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
  V s[R][4];
  for (int r = 0; r < R; ++r)
    for (int j = 0; j < 4; ++j) s[r][j] = hn::Zero(d);
  const T *w0 = w, *w1 = w + w_stride, *w2 = w + 2 * w_stride, *w3 = w + 3 * w_stride;
  std::int64_t i = 0;
  for (; i + lanes <= k; i += lanes) {
    const V b0 = hn::LoadU(d, w0 + i), b1 = hn::LoadU(d, w1 + i), b2 = hn::LoadU(d, w2 + i), b3 = hn::LoadU(d, w3 + i);
    for (int r = 0; r < R; ++r) {
      const V a = hn::LoadU(d, x + r * x_stride + i);
      s[r][0] = hn::MulAdd(a, b0, s[r][0]);
      s[r][1] = hn::MulAdd(a, b1, s[r][1]);
      s[r][2] = hn::MulAdd(a, b2, s[r][2]);
      s[r][3] = hn::MulAdd(a, b3, s[r][3]);
    }
  }
  for (int r = 0; r < R; ++r) {
    sum_four(d, s[r][0], s[r][1], s[r][2], s[r][3], sums + 4 * r);
    for (std::int64_t c = i; c < k; ++c)
      for (int j = 0; j < 4; ++j) sums[4 * r + j] += x[r * x_stride + c] * w[j * w_stride + c];
  }
}

template <class T>
void gemm_rows_kernel(T* y, std::int64_t y_stride, std::int64_t rows, std::int64_t n, std::int64_t k, const T* x,
                      std::int64_t x_stride, const T* weight, std::int64_t w_stride) {
  constexpr std::int64_t kTile = 3;
  const std::int64_t block = std::max<std::int64_t>(
      kTile, (128 << 10) / static_cast<std::int64_t>(sizeof(T)) / std::max<std::int64_t>(k, 1) / kTile * kTile);
  T sums[4 * kTile];
  for (std::int64_t begin = 0; begin < rows; begin += block) {
    const std::int64_t end = std::min(rows, begin + block);
    for (std::int64_t j = 0; j < n; j += 4) {
      // The last of W's rows are taken in an overlapping group of four.
      const std::int64_t first = std::min(j, std::max<std::int64_t>(n - 4, 0)), count = std::min<std::int64_t>(4, n);
      const T* w = weight + first * w_stride;
      const std::int64_t w_step = n < 4 ? 0 : w_stride;
      for (std::int64_t r = begin; r < end; r += kTile) {
        const T* a = x + r * x_stride;
        const std::int64_t tile = std::min(kTile, end - r);
        if (tile == 3)
          rows_by_four<3>(k, a, x_stride, w, w_step, sums);
        else if (tile == 2)
          rows_by_four<2>(k, a, x_stride, w, w_step, sums);
        else
          rows_by_four<1>(k, a, x_stride, w, w_step, sums);
        for (std::int64_t t = 0; t < tile; ++t)
          for (std::int64_t i = 0; i < count; ++i) y[(r + t) * y_stride + first + i] = sums[4 * t + i];
      }
    }
  }
}

HEED_INSTANTIATE_SIMD(gemm_rows_kernel,
                      (float* y, std::int64_t ys, std::int64_t m, std::int64_t n, std::int64_t k, const float* x,
                       std::int64_t xs, const float* w, std::int64_t ws),
                      (double* y, std::int64_t ys, std::int64_t m, std::int64_t n, std::int64_t k, const double* x,
                       std::int64_t xs, const double* w, std::int64_t ws),
                      (y, ys, m, n, k, x, xs, w, ws))

}  // namespace heed::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace heed {

HEED_EXPORT_SIMD(gemm_rows_kernel)

void gemm_rows(std::int64_t rows, std::int64_t n, std::int64_t k, const float* x, std::int64_t x_stride,
               const float* weight, std::int64_t weight_stride, float* y, std::int64_t y_stride) {
  simd::gemm_rows_kernel(y, y_stride, rows, n, k, x, x_stride, weight, weight_stride);
}
void gemm_rows(std::int64_t rows, std::int64_t n, std::int64_t k, const double* x, std::int64_t x_stride,
               const double* weight, std::int64_t weight_stride, double* y, std::int64_t y_stride) {
  simd::gemm_rows_kernel(y, y_stride, rows, n, k, x, x_stride, weight, weight_stride);
}

}  // namespace heed
#endif  // HWY_ONCE
