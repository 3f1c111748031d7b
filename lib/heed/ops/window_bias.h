// The relative position bias of attention within windows of a grid of tokens (Liu et al. 2021, "Swin Transformer",
// section 3.2, formula 4). A table holds a number for each head and for each difference of two tokens' rows and
// columns. The windows of one shape share all their biases: they are one matrix for each head, which attention() adds
// to the logits of each such window. For example, in a window of 2 x 2 tokens with the tokens
//   0 1
//   2 3
// query 0 gets from key 3 the number for the row difference -1 and the column difference -1.
#pragma once

#include <cstdint>
#include <span>

#include "heed/ops/position_bias.h"

namespace heed {

/// Computes the bias of windows: for the query i in row y_i and column x_i of its window, and the key j,
///   bias(i, j) = table[(y_i - y_j + M - 1) (2M - 1) + x_i - x_j + M - 1, head].
/// M = `window` is the largest number of rows or columns of a window. A smaller window, which a border of the grid
/// cuts, reads the same table, because the bias depends on differences only.
///
/// Shape: table [(2M - 1)^2, H]. Throws Error where the table has another number of rows, and where a shape of
/// `windows` does not fit M x M tokens. The result serves attention() over sequences that are the windows. The arrays
/// of `windows` must stay in memory until the backward pass has ended.
/// Backward: dtable[c, head] += the sum of dbias(i, j) over all shapes and all pairs that read the row c of the table,
/// in a fixed order.
template <class T>
PositionBias<T> window_bias(Graph<T>& graph, const Variable<T>& table, std::int64_t window, PackedWindows windows);

/// Computes the matrices of all `shapes` from `table` [(2M - 1)^2, H]: bias [H, window_bias_columns(shapes)], where
/// `matrices` says which columns belong to which shape. The unused columns are set to 0.
template <class T>
void window_bias_forward(CpuContext& device, Tensor<T> table, std::int64_t window, std::span<const WindowShape> shapes,
                         const WindowMatrix* matrices, Tensor<T> bias);
template <class T>
void window_bias_forward(CudaContext& device, Tensor<T> table, std::int64_t window, std::span<const WindowShape> shapes,
                         const WindowMatrix* matrices, Tensor<T> bias);
/// Adds the gradient `dbias` of the bias of windows to `dtable` [(2M - 1)^2, H].
template <class T>
void window_bias_backward(CpuContext& device, Tensor<T> dbias, std::int64_t window, std::span<const WindowShape> shapes,
                          const WindowMatrix* matrices, Tensor<T> dtable);
template <class T>
void window_bias_backward(CudaContext& device, Tensor<T> dbias, std::int64_t window,
                          std::span<const WindowShape> shapes, const WindowMatrix* matrices, Tensor<T> dtable);

}  // namespace heed
