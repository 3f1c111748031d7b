// Matrix products for inference: Y = X W^T + b with W packed in panels.
//
// The problem: a translated line must not change with the lines beside it, but BLAS libraries sum a row in another
// order when the number of rows changes. The idea: every element of Y is one sum over k in ascending order, beginning
// with the bias. To make that fast, W is packed once into panels. A panel holds a few rows of W (16 in float) side by
// side, so that one vector load reads the next number of each of these rows.
//
// An example with panels of 2 rows: a weight W [3, 2] becomes two panels, and a zero row fills the second panel up:
//
//   W = 1 2     panel 0 = 1 3     panel 1 = 5 0
//       3 4               2 4               6 0
//       5 6
//
// For a row x = (10, 100) and the bias b = (7, 8, 9), panel 0 gives two elements of y at once:
//   y[0..1] = (7, 8) + 10 * (1, 3) + 100 * (2, 4) = (217, 438),
// and panel 1 gives (9, 0) + 10 * (5, 0) + 100 * (6, 0) = (659, 0), of which only y[2] = 659 is stored.
#pragma once

#include <cstdint>

namespace heed {

/// The number of rows of W that a panel holds. One number from each of these rows fills a cache line of 64 bytes.
template <class T>
constexpr std::int64_t kPanelRows = 64 / sizeof(T);

/// A weight W [n, k] in the order in which gemm_rows() reads it: ceil(n / kPanelRows) panels one after the other. A
/// panel is a matrix [k, kPanelRows] whose columns are rows of W; zeros fill the last panel up.
template <class T>
struct Panels {
  const T* data = nullptr;  ///< the address of the first panel, which begins at a cache line

  /// Returns the number of elements in all panels of a weight [n, k].
  static constexpr std::int64_t size(std::int64_t n, std::int64_t k) {
    return (n + kPanelRows<T> - 1) / kPanelRows<T> * kPanelRows<T> * k;
  }
};

/// Packs a weight [n, k], with `stride` elements from row to row, into panels. `panels` has Panels<T>::size(n, k)
/// elements.
void pack_panels(std::int64_t n, std::int64_t k, const float* weight, std::int64_t stride, float* panels);
void pack_panels(std::int64_t n, std::int64_t k, const double* weight, std::int64_t stride, double* panels);
/// Packs the transpose of a matrix [k, n], with `stride` elements from row to row: the panels of the weight [n, k]
/// whose columns are the rows of `matrix`. gemm_rows() then computes Y = X M with the matrix M.
void pack_transposed_panels(std::int64_t n, std::int64_t k, const float* matrix, std::int64_t stride, float* panels);
void pack_transposed_panels(std::int64_t n, std::int64_t k, const double* matrix, std::int64_t stride, double* panels);

/// Computes Y = X W^T + b for inference with a packed weight W. An element of Y is one sum over k in ascending order
/// that begins with b. Therefore a row of Y has the same bits whatever the other rows are and however many there are.
/// No BLAS library promises this, because BLAS kernels add up in another order at the edges of a matrix.
///
/// Shapes: x `rows` rows of k elements, weight [n, k], bias [n] or null, y `rows` rows of n elements; strides in
/// elements.
void gemm_rows(std::int64_t rows, std::int64_t n, std::int64_t k, const float* x, std::int64_t x_stride,
               Panels<float> weight, const float* bias, float* y, std::int64_t y_stride);
void gemm_rows(std::int64_t rows, std::int64_t n, std::int64_t k, const double* x, std::int64_t x_stride,
               Panels<double> weight, const double* bias, double* y, std::int64_t y_stride);

/// Computes Y = X W^T with an unpacked weight, which has `weight_stride` elements from row to row. The result has the
/// same bits as with a packed weight. Every call packs the weight again; that cost is acceptable for many rows of X, or
/// for a weight that changes from call to call.
void gemm_rows(std::int64_t rows, std::int64_t n, std::int64_t k, const float* x, std::int64_t x_stride,
               const float* weight, std::int64_t weight_stride, float* y, std::int64_t y_stride);
void gemm_rows(std::int64_t rows, std::int64_t n, std::int64_t k, const double* x, std::int64_t x_stride,
               const double* weight, std::int64_t weight_stride, double* y, std::int64_t y_stride);

}  // namespace heed
