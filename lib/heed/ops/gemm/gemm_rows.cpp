#include "heed/ops/gemm/gemm_rows.h"

#include <algorithm>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "heed/ops/gemm/gemm_rows.cpp"
#include <hwy/foreach_target.h>  // IWYU pragma: keep
#include <hwy/highway.h>

#include "heed/ops/dot_rows-inl.h"
#include "heed/ops/simd-inl.h"

HWY_BEFORE_NAMESPACE();
namespace heed::HWY_NAMESPACE {

template <class T>
void gemm_rows_kernel(T* y, std::int64_t y_stride, std::int64_t rows, std::int64_t n, std::int64_t k, const T* x,
                      std::int64_t x_stride, const T* weight, std::int64_t w_stride) {
  // As many rows of x at a time as stay in the second-level cache beside the rows of W that pass by.
  const std::int64_t block =
      std::max<std::int64_t>(12, (std::int64_t{128} << 10) / static_cast<std::int64_t>(sizeof(T)) / (k + 1) / 12 * 12);
  for (std::int64_t begin = 0; begin < rows; begin += block)
    dot_products(
        std::min(block, rows - begin), n, k, x + begin * x_stride, x_stride,
        [&](std::int64_t j) { return weight + j * w_stride; }, T(1), y + begin * y_stride, y_stride);
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
