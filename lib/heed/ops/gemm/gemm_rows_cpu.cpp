#include "heed/ops/gemm/gemm_rows.h"

#include <algorithm>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "heed/ops/gemm/gemm_rows_cpu.cpp"
#include <hwy/foreach_target.h>  // IWYU pragma: keep
#include <hwy/highway.h>

#include "heed/ops/dot_rows-inl.h"
#include "heed/ops/simd-inl.h"

HWY_BEFORE_NAMESPACE();
namespace heed::HWY_NAMESPACE {

template <class T>
void gemm_rows_kernel(T* y, std::int64_t y_stride, std::int64_t rows, std::int64_t n, std::int64_t k, const T* x,
                      std::int64_t x_stride, const T* weight, std::int64_t w_stride) {
  // A block of W stays in the second-level cache while all rows of x pass by, a few at a time, which stay in the first.
  const auto rows_in = [&](std::int64_t bytes, std::int64_t step) {
    return std::max(step, bytes / static_cast<std::int64_t>(sizeof(T)) / (k + 1) / step * step);
  };
  const std::int64_t w_block = rows_in(std::int64_t{128} << 10, 4), x_block = rows_in(std::int64_t{16} << 10, 3);
  for (std::int64_t j = 0; j < n; j += w_block)
    for (std::int64_t r = 0; r < rows; r += x_block)
      dot_products(
          std::min(x_block, rows - r), std::min(w_block, n - j), k, x + r * x_stride, x_stride,
          [&](std::int64_t i) { return weight + (j + i) * w_stride; }, T(1), y + r * y_stride + j, y_stride);
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
