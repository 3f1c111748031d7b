#pragma once

#include "heed/ops/dropout_mask.h"

namespace heed {

/// y = residual + dropout(branch).
///
/// Shapes: residual any, branch the same -> y the same. p as in dropout().
/// Kept for the way back: the mask. Backward: dresidual += dy, dbranch += dy as dropout leaves it.
template <class T>
Variable<T> residual(Graph<T>& graph, const Variable<T>& residual, const Variable<T>& branch, double p);

/// y = residual + branch, the latter as dropout with this mask leaves it.
template <class T>
void residual_forward(CpuContext& device, Tensor<T> residual, Tensor<T> branch, DropoutMask<T> mask, Tensor<T> y);

}  // namespace heed
