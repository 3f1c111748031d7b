#pragma once

#include "heed/ops/dropout_mask.h"

namespace heed {

/// Inverted dropout (Srivastava et al. 2014): y = x k / (1 - p), k from {0, 1} with P(k = 0) = p.
///
/// Shapes: x any -> y the same. Gives x itself where p rounds to 0 or the graph is not recording.
/// Kept for the way back: the mask, one byte an element. Backward: dx += dy k / (1 - p).
template <class T>
Variable<T> dropout(Graph<T>& graph, const Variable<T>& x, double p);

/// y = x, as dropout with this mask leaves it.
template <class T>
void dropout_forward(CpuContext& device, Tensor<T> x, DropoutMask<T> mask, Tensor<T> y);

/// dx += dy, as dropout with this mask leaves it (an absent mask leaves all).
template <class T>
void dropout_backward(CpuContext& device, Tensor<T> dy, DropoutMask<T> mask, Tensor<T> dx);

}  // namespace heed
