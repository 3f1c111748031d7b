#pragma once

#include <cstdint>

namespace heed {

/// Rows of W in a panel: a cache line of one column each.
template <class T>
constexpr std::int64_t kPanelRows = 64 / sizeof(T);

/// W [n, k] in the order in which gemm_rows reads it: ceil(n / kPanelRows) panels, each [k, kPanelRows] with a row of W
/// in a column; zeros stand for the rows that the last one lacks.
template <class T>
struct Panels {
  const T* data = nullptr;

  /// Elements of all panels.
  static constexpr std::int64_t size(std::int64_t n, std::int64_t k) {
    return (n + kPanelRows<T> - 1) / kPanelRows<T> * kPanelRows<T> * k;
  }
};

/// Writes the Panels of a weight [n, k], `stride` elements from row to row.
void pack_panels(std::int64_t n, std::int64_t k, const float* weight, std::int64_t stride, float* panels);
void pack_panels(std::int64_t n, std::int64_t k, const double* weight, std::int64_t stride, double* panels);

/// Y = X W^T + b for inference: an element of Y is one sum over k in ascending order, from b on, so that a row has the
/// same bits whatever the other rows and their number are, which no BLAS promises (their blocks at an edge add up in
/// another order).
///
/// Shapes: x `rows` rows of k elements, weight [n, k], bias [n] or null, y `rows` rows of n elements; strides in
/// elements.
void gemm_rows(std::int64_t rows, std::int64_t n, std::int64_t k, const float* x, std::int64_t x_stride,
               Panels<float> weight, const float* bias, float* y, std::int64_t y_stride);
void gemm_rows(std::int64_t rows, std::int64_t n, std::int64_t k, const double* x, std::int64_t x_stride,
               Panels<double> weight, const double* bias, double* y, std::int64_t y_stride);

/// The same bits without a bias from a weight where it lies, which costs the packing: for many rows, or a weight that
/// changes.
void gemm_rows(std::int64_t rows, std::int64_t n, std::int64_t k, const float* x, std::int64_t x_stride,
               const float* weight, std::int64_t weight_stride, float* y, std::int64_t y_stride);
void gemm_rows(std::int64_t rows, std::int64_t n, std::int64_t k, const double* x, std::int64_t x_stride,
               const double* weight, std::int64_t weight_stride, double* y, std::int64_t y_stride);

}  // namespace heed
