#include "heed/ops/gemm/gemm_rows.h"

#include <algorithm>

#include "heed/tensor/aligned_vector.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "heed/ops/gemm/gemm_rows_cpu.cpp"
#include <hwy/foreach_target.h>  // IWYU pragma: keep
#include <hwy/highway.h>

#include "heed/ops/simd-inl.h"
#include "heed/ops/small_gemm-inl.h"

HWY_BEFORE_NAMESPACE();
namespace heed::HWY_NAMESPACE {

/// The number of SIMD vectors that hold one row of a panel, that is, one number from each of the kPanelRows rows of W
/// that a panel holds.
template <class T>
constexpr std::int64_t kPanelVectors = kPanelRows<T> / kLanes<T>;

/// The size of a tile of Y whose sums stay in registers: kTilePanels panels wide and kTileRows rows high. The sums fill
/// the registers of the CPU: 6 x 4 vectors where the CPU has 32 registers, 6 x 2 or 3 x 4 vectors where it has 16.
template <class T>
constexpr int kTilePanels = kPanelVectors<T> == 1 ? 4 : 1;
template <class T>
constexpr int kTileRows = kPanelVectors<T> <= 2 ? 6 : 3;

/// Computes a tile of Y = X W^T + b: R rows, and the columns of Y that P panels of W give. `bias` may be null. `y` and
/// a bias that is not null must reach to the end of the last panel.
template <int R, int P, class T>
HWY_INLINE void tile(std::int64_t k, const T* HWY_RESTRICT x, std::int64_t x_stride, const T* HWY_RESTRICT panels,
                     const T* HWY_RESTRICT bias, T* HWY_RESTRICT y, std::int64_t y_stride) {
  const hn::ScalableTag<T> d;
  using V = hn::Vec<decltype(d)>;
  constexpr int kPerPanel = kPanelVectors<T>, kColumns = P * kPerPanel;
  V sums[R][kColumns];
  for (int c = 0; c < kColumns; ++c) {
    const V start = bias ? hn::LoadU(d, bias + c * kLanes<T>) : hn::Zero(d);
    for (int r = 0; r < R; ++r) sums[r][c] = start;
  }
  for (std::int64_t i = 0; i < k; ++i) {
    V w[kColumns];
    for (int c = 0; c < kColumns; ++c)
      w[c] = hn::Load(d, panels + (c / kPerPanel * k + i) * kPanelRows<T> + c % kPerPanel * kLanes<T>);
    for (int r = 0; r < R; ++r) {
      const V left = hn::Set(d, x[r * x_stride + i]);
      for (int c = 0; c < kColumns; ++c) sums[r][c] = hn::MulAdd(left, w[c], sums[r][c]);
    }
  }
  for (int r = 0; r < R; ++r)
    for (int c = 0; c < kColumns; ++c) hn::StoreU(sums[r][c], d, y + r * y_stride + c * kLanes<T>);
}

/// Computes R rows of Y = X W^T + b for the last panel of W, of which only `columns` columns belong to Y. The sums go
/// through a buffer, so that nothing after these columns of `bias` and `y` is read or written.
template <int R, class T>
HWY_INLINE void edge_tile(std::int64_t columns, std::int64_t k, const T* x, std::int64_t x_stride, const T* panel,
                          const T* bias, T* y, std::int64_t y_stride) {
  T start[kPanelRows<T>] = {}, sums[R * kPanelRows<T>];
  if (bias) std::copy_n(bias, columns, start);
  tile<R, 1>(k, x, x_stride, panel, start, sums, kPanelRows<T>);
  for (int r = 0; r < R; ++r) std::copy_n(sums + r * kPanelRows<T>, columns, y + r * y_stride);
}

/// Divides the rows `done` ... `rows` - 1 into `groups` groups of at most R rows and of nearly equal size. Calls
/// body(size, first) for each group, where `size` is a compile-time constant and `first` is the group's first row.
template <int R, class Body>
HWY_INLINE void for_row_groups(std::int64_t rows, std::int64_t groups, std::int64_t done, Body body) {
  if constexpr (R > 0) {
    for (; groups > 0 && (rows - done + groups - 1) / groups == R; --groups, done += R)
      body(std::integral_constant<int, R>(), done);
    for_row_groups<R - 1>(rows, groups, done, body);
  }
}

/// Computes Y = X W^T + b from W packed in panels (see gemm_rows() for the arguments).
template <class T>
void gemm_rows_kernel(T* y, std::int64_t y_stride, std::int64_t rows, std::int64_t n, std::int64_t k, const T* x,
                      std::int64_t x_stride, const T* panels, const T* bias) {
  // The inner loop runs over the rows of X, so that the panels of W stay in the cache while all rows are multiplied by
  // them.
  const auto for_rows = [&](auto body) HWY_ATTR {
    for_row_groups<kTileRows<T>>(rows, (rows + kTileRows<T> - 1) / kTileRows<T>, 0, body);
  };
  const auto bias_from = [&](std::int64_t j) HWY_ATTR { return bias ? bias + j : nullptr; };
  std::int64_t j = 0;
  const auto whole_panels = [&](auto count) HWY_ATTR {
    for (; j + count() * kPanelRows<T> <= n; j += count() * kPanelRows<T>)
      for_rows([&](auto group, std::int64_t r) HWY_ATTR {
        tile<group(), count()>(k, x + r * x_stride, x_stride, panels + j * k, bias_from(j), y + r * y_stride + j,
                               y_stride);
      });
  };
  whole_panels(std::integral_constant<int, kTilePanels<T>>());
  if constexpr (kTilePanels < T >> 1) whole_panels(std::integral_constant<int, 1>());
  if (j == n) return;
  for_rows([&](auto group, std::int64_t r) HWY_ATTR {
    edge_tile<group()>(n - j, k, x + r * x_stride, x_stride, panels + j * k, bias_from(j), y + r * y_stride + j,
                       y_stride);
  });
}

/// Packs a weight [n, k] into panels (matrices that hold a few rows of the weight as columns). `zeros` holds k zeros.
template <class T>
void pack_panels_kernel(T* panels, std::int64_t n, std::int64_t k, const T* weight, std::int64_t stride,
                        const T* zeros) {
  for (std::int64_t j = 0; j < n; j += kPanelRows<T>, panels += kPanelRows<T> * k) {
    const std::int64_t rows = std::min(kPanelRows<T>, n - j);
    if (rows < kPanelRows<T>) std::fill_n(panels, kPanelRows<T> * k, T(0));
    transpose_scaled(weight + j * stride, stride, rows, k, T(1), zeros, panels, kPanelRows<T>);
  }
}

HEED_INSTANTIATE_SIMD(gemm_rows_kernel,
                      (float* y, std::int64_t ys, std::int64_t m, std::int64_t n, std::int64_t k, const float* x,
                       std::int64_t xs, const float* p, const float* b),
                      (double* y, std::int64_t ys, std::int64_t m, std::int64_t n, std::int64_t k, const double* x,
                       std::int64_t xs, const double* p, const double* b),
                      (y, ys, m, n, k, x, xs, p, b))
HEED_INSTANTIATE_SIMD(pack_panels_kernel,
                      (float* p, std::int64_t n, std::int64_t k, const float* w, std::int64_t s, const float* z),
                      (double* p, std::int64_t n, std::int64_t k, const double* w, std::int64_t s, const double* z),
                      (p, n, k, w, s, z))

}  // namespace heed::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace heed {

HEED_EXPORT_SIMD(gemm_rows_kernel)
HEED_EXPORT_SIMD(pack_panels_kernel)

namespace {

template <class T>
void pack(std::int64_t n, std::int64_t k, const T* weight, std::int64_t stride, T* panels) {
  const AlignedVector<T> zeros(static_cast<std::size_t>(k));
  simd::pack_panels_kernel(panels, n, k, weight, stride, zeros.data());
}

template <class T>
void pack_transposed(std::int64_t n, std::int64_t k, const T* matrix, std::int64_t stride, T* panels) {
  for (std::int64_t j = 0; j < n; j += kPanelRows<T>) {
    const std::int64_t columns = std::min(kPanelRows<T>, n - j);
    for (std::int64_t i = 0; i < k; ++i, panels += kPanelRows<T>) {
      std::copy_n(matrix + i * stride + j, columns, panels);
      std::fill(panels + columns, panels + kPanelRows<T>, T(0));
    }
  }
}

/// Computes Y = X W^T with a weight W that is not packed: packs four panels of W at a time and multiplies X by these
/// four.
template <class T>
void multiply_unpacked(std::int64_t rows, std::int64_t n, std::int64_t k, const T* x, std::int64_t x_stride,
                       const T* weight, std::int64_t weight_stride, T* y, std::int64_t y_stride) {
  constexpr std::int64_t kBlock = 4 * kPanelRows<T>;
  AlignedVector<T> panels(static_cast<std::size_t>(kBlock * k));
  for (std::int64_t j = 0; j < n; j += kBlock) {
    const std::int64_t columns = std::min(kBlock, n - j);
    pack(columns, k, weight + j * weight_stride, weight_stride, panels.data());
    simd::gemm_rows_kernel(y + j, y_stride, rows, columns, k, x, x_stride, static_cast<const T*>(panels.data()),
                           static_cast<const T*>(nullptr));
  }
}

}  // namespace

void pack_panels(std::int64_t n, std::int64_t k, const float* weight, std::int64_t stride, float* panels) {
  pack(n, k, weight, stride, panels);
}
void pack_panels(std::int64_t n, std::int64_t k, const double* weight, std::int64_t stride, double* panels) {
  pack(n, k, weight, stride, panels);
}
void pack_transposed_panels(std::int64_t n, std::int64_t k, const float* matrix, std::int64_t stride, float* panels) {
  pack_transposed(n, k, matrix, stride, panels);
}
void pack_transposed_panels(std::int64_t n, std::int64_t k, const double* matrix, std::int64_t stride, double* panels) {
  pack_transposed(n, k, matrix, stride, panels);
}

void gemm_rows(std::int64_t rows, std::int64_t n, std::int64_t k, const float* x, std::int64_t x_stride,
               Panels<float> weight, const float* bias, float* y, std::int64_t y_stride) {
  simd::gemm_rows_kernel(y, y_stride, rows, n, k, x, x_stride, weight.data, bias);
}
void gemm_rows(std::int64_t rows, std::int64_t n, std::int64_t k, const double* x, std::int64_t x_stride,
               Panels<double> weight, const double* bias, double* y, std::int64_t y_stride) {
  simd::gemm_rows_kernel(y, y_stride, rows, n, k, x, x_stride, weight.data, bias);
}

void gemm_rows(std::int64_t rows, std::int64_t n, std::int64_t k, const float* x, std::int64_t x_stride,
               const float* weight, std::int64_t weight_stride, float* y, std::int64_t y_stride) {
  multiply_unpacked(rows, n, k, x, x_stride, weight, weight_stride, y, y_stride);
}
void gemm_rows(std::int64_t rows, std::int64_t n, std::int64_t k, const double* x, std::int64_t x_stride,
               const double* weight, std::int64_t weight_stride, double* y, std::int64_t y_stride) {
  multiply_unpacked(rows, n, k, x, x_stride, weight, weight_stride, y, y_stride);
}

}  // namespace heed
#endif  // HWY_ONCE
