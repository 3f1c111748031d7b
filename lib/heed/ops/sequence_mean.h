#pragma once

#include <cstdint>

#include "heed/autograd/graph.h"

namespace heed {

/// Computes the mean of the rows of each sequence (mean pooling): y_b = (sum of x_i over the rows i of sequence b) /
/// their number. No sequence may be empty.
///
/// Shapes: x [N, D], whose rows are the tokens of B sequences -> y [B, D]. Nothing is saved for the backward pass.
/// Backward: dx_i += dy_b / number of rows of sequence b.
template <class T>
Variable<T> sequence_mean(Graph<T>& graph, const Variable<T>& x, PackedOffsets sequences);

/// Computes the means y [B, D] of the rows of x [N, D].
template <class T>
void sequence_mean_forward(CpuContext& device, Tensor<T> x, PackedOffsets sequences, Tensor<T> y);
template <class T>
void sequence_mean_forward(CudaContext& device, Tensor<T> x, PackedOffsets sequences, Tensor<T> y);
/// Adds the gradient dy [B, D] of the means to dx [N, D].
template <class T>
void sequence_mean_backward(CpuContext& device, Tensor<T> dy, PackedOffsets sequences, Tensor<T> dx);
template <class T>
void sequence_mean_backward(CudaContext& device, Tensor<T> dy, PackedOffsets sequences, Tensor<T> dx);

}  // namespace heed
