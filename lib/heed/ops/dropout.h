#pragma once

#include "heed/ops/dropout_mask.h"

namespace heed {

/// Applies inverted dropout (Srivastava et al. 2014): y = x k / (1 - p), where k is 0 with probability p and otherwise
/// 1.
///
/// Shapes: x any -> y the same. p is rounded to a multiple of 1/65536. Returns x itself where the rounded p is 0 or the
/// graph is not recording. Saved for the backward pass: the mask k, one byte for each element. Backward: dx += dy k /
/// (1 - p).
template <class T>
Variable<T> dropout(Graph<T>& graph, const Variable<T>& x, double p);

/// Applies dropout with the given mask: y = x * kept * scale, where `kept` and `scale` are members of the mask.
template <class T>
void dropout_forward(CpuContext& device, Tensor<T> x, DropoutMask<T> mask, Tensor<T> y);
template <class T>
void dropout_forward(CudaContext& device, Tensor<T> x, DropoutMask<T> mask, Tensor<T> y);

/// Computes the backward pass of dropout with the given mask: dx += dy * kept * scale, or dx += dy without a mask.
template <class T>
void dropout_backward(CpuContext& device, Tensor<T> dy, DropoutMask<T> mask, Tensor<T> dx);
template <class T>
void dropout_backward(CudaContext& device, Tensor<T> dy, DropoutMask<T> mask, Tensor<T> dx);

}  // namespace heed
