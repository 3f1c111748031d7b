#pragma once

#include "heed/ops/dropout_mask.h"
#include "heed/ops/gemm/maybe_rounded.h"

namespace heed {

/// Computes the residual connection y = residual + dropout(branch), where `branch` is the output of a sublayer and p is
/// the probability of the dropout.
///
/// Shapes: residual any, branch the same -> y the same.
/// Saved for the backward pass: the dropout mask. Backward: dresidual += dy, dbranch += dy * mask * 1 / (1 - p).
template <class T>
Variable<T> residual(Graph<T>& graph, const Variable<T>& residual, const Variable<T>& branch, double p);

/// Computes y = residual + dropout(branch) with the given dropout mask, or y = residual + branch without a mask. On a
/// GPU the branch may be stored as bfloat16 alone.
template <class T>
void residual_forward(CpuContext& device, Tensor<T> residual, MaybeRounded<T> branch, DropoutMask<T> mask, Tensor<T> y);
template <class T>
void residual_forward(CudaContext& device, Tensor<T> residual, MaybeRounded<T> branch, DropoutMask<T> mask,
                      Tensor<T> y);

}  // namespace heed
