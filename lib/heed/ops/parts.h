#pragma once

#include <span>

#include "heed/autograd/graph.h"

namespace heed {

// Ops that take a matrix apart and put matrices together. A model that computes one step after another works on the
// rows of a step, and afterwards on the rows of all steps at once.

/// Returns rows begin ... begin + count - 1 of x [N, D], as a view: [count, D]. Backward: the gradient is added to
/// these rows of dx.
template <class T>
Variable<T> row_block(Graph<T>& graph, const Variable<T>& x, std::int64_t begin, std::int64_t count);

/// Returns the rows of all `parts`, one part after the other. Shapes: parts [n_i, D] -> [sum of n_i, D]. Backward: each
/// part gets the gradient of its rows.
template <class T>
Variable<T> stack_rows(Graph<T>& graph, std::span<const Variable<T>> parts);

/// Returns row rows[i] of x as row i. If `beside` is above 1, each row of the result consists of `beside` rows of x,
/// side by side: row i has the rows rows[i * beside], rows[i * beside + 1], ... of x. Shapes: x [N, D], rows [M] in 0
/// ... N - 1 -> [M / beside, beside D]. `rows` must stay in memory until the backward pass has ended. Backward:
/// dx[rows[i]] += the part of dy that row rows[i] of x gave, in the order of i.
template <class T>
Variable<T> gather_rows(Graph<T>& graph, const Variable<T>& x, std::span<const std::int32_t> rows,
                        std::int64_t beside = 1);

/// Returns the columns of all `parts` side by side. Shapes: parts [N, d_i] -> [N, sum of d_i]. Backward: each part gets
/// the gradient of its columns.
template <class T>
Variable<T> concatenate(Graph<T>& graph, std::span<const Variable<T>> parts);

/// Computes gather_rows(): y = the rows of x, one after another.
template <class T>
void gather_rows_forward(CpuContext& device, Tensor<T> x, std::span<const std::int32_t> rows, Tensor<T> y);
template <class T>
void gather_rows_forward(CudaContext& device, Tensor<T> x, std::span<const std::int32_t> rows, Tensor<T> y);
/// Adds the gradient dy of the gathered rows to dx, in the order of `rows`.
template <class T>
void gather_rows_backward(CpuContext& device, Tensor<T> dy, std::span<const std::int32_t> rows, Tensor<T> dx);
template <class T>
void gather_rows_backward(CudaContext& device, Tensor<T> dy, std::span<const std::int32_t> rows, Tensor<T> dx);

/// Copies or adds a block of rows and columns, to = from or to += from, where rows begin `to_stride` and `from_stride`
/// elements apart.
template <class T>
void copy_block(CpuContext& device, const T* from, std::int64_t from_stride, T* to, std::int64_t to_stride,
                std::int64_t rows, std::int64_t columns);
template <class T>
void copy_block(CudaContext& device, const T* from, std::int64_t from_stride, T* to, std::int64_t to_stride,
                std::int64_t rows, std::int64_t columns);
template <class T>
void add_block(CpuContext& device, const T* from, std::int64_t from_stride, T* to, std::int64_t to_stride,
               std::int64_t rows, std::int64_t columns);
template <class T>
void add_block(CudaContext& device, const T* from, std::int64_t from_stride, T* to, std::int64_t to_stride,
               std::int64_t rows, std::int64_t columns);

}  // namespace heed
