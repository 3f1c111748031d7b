#pragma once

#include <cstdint>

namespace heed {

/// Y = X W^T for inference: a row of Y has the same bits whatever the other rows and their number are, which no BLAS
/// promises (their blocks at an edge add up in another order). As fast as theirs for many rows, faster for few: W is
/// read where it lies, in one pass for every block of rows.
///
/// Shapes: x `rows` rows of k elements, weight [n, k], y `rows` rows of n elements; strides in elements.
void gemm_rows(std::int64_t rows, std::int64_t n, std::int64_t k, const float* x, std::int64_t x_stride,
               const float* weight, std::int64_t weight_stride, float* y, std::int64_t y_stride);
void gemm_rows(std::int64_t rows, std::int64_t n, std::int64_t k, const double* x, std::int64_t x_stride,
               const double* weight, std::int64_t weight_stride, double* y, std::int64_t y_stride);

}  // namespace heed
