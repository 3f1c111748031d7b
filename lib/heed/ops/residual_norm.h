#pragma once

#include "heed/ops/dropout_mask.h"
#include "heed/ops/gemm/maybe_rounded.h"
#include "heed/ops/row_norm.h"

namespace heed {

/// The two results of residual_norm(), both [N, D]: the sum, and the normalised sum. A post-norm Transformer uses
/// `normed` alone; a pre-norm Transformer uses `sum` as well.
template <class T>
struct ResidualNorm {
  Variable<T> sum, normed;
};

/// Computes a residual connection and the normalisation that follows, in one pass over the rows: sum = residual +
/// dropout(branch) and normed = layer_norm(sum) or rms_norm(sum), where p is the probability of the dropout.
///
/// Shapes: residual [N, D], branch [N, D], scale [D], bias [D], or absent for RowNorm::rms -> sum, normed [N, D].
///
/// `normed` is also rounded for linear() (see rounded_memory()).
///
/// `memory`, where not empty, is the memory in which `sum` is stored. The value of `branch` may be given as that
/// memory, unless another op or the backward pass reads the value of `branch` later (the backward pass of a ReLU reads
/// its result).
///
/// Saved for the backward pass: sum, the dropout mask, and the statistics of each row, as in row_norm_forward().
///
/// Backward, in one pass: t = dsum + dx, where dx is the gradient of the normalisation's input for dnormed; dresidual
/// += t, dbranch += t * mask * 1 / (1 - p); dscale and dbias as in layer_norm() or rms_norm().
template <class T>
ResidualNorm<T> residual_norm(Graph<T>& graph, RowNorm kind, const Variable<T>& residual, const Variable<T>& branch,
                              const Variable<T>& scale, const Variable<T>& bias, double epsilon, double p,
                              Tensor<T> memory = {});

/// Computes `sum` and `normed` of residual_norm(), `normed` in full precision, and rounded too where it has memory for
/// that. Stores the statistics of each row (see row_norm_forward()) in `statistics` [N, 2], unless that tensor is
/// empty. `sum` and `normed` may be the memory of `residual`, and `sum` may be the memory of `branch`.
/// On a GPU the branch may be stored as bfloat16 alone.
template <class T>
void residual_norm_forward(CpuContext& device, RowNorm kind, Tensor<T> residual, MaybeRounded<T> branch,
                           DropoutMask<T> mask, Tensor<T> scale, Tensor<T> bias, double epsilon, Tensor<T> sum,
                           MaybeRounded<T> normed, Tensor<T> statistics);
template <class T>
void residual_norm_forward(CudaContext& device, RowNorm kind, Tensor<T> residual, MaybeRounded<T> branch,
                           DropoutMask<T> mask, Tensor<T> scale, Tensor<T> bias, double epsilon, Tensor<T> sum,
                           MaybeRounded<T> normed, Tensor<T> statistics);

/// Computes the gradients of residual_norm(). Adds to dscale and dbias. Adds to dresidual and dbranch where
/// `adds_to_residual` and `adds_to_branch` are true, otherwise overwrites them. An empty gradient tensor is skipped; an
/// empty dsum counts as zeros. On a GPU dbranch may be stored as bfloat16 where it is overwritten.
template <class T>
void residual_norm_backward(CpuContext& device, RowNorm kind, Tensor<T> sum, DropoutMask<T> mask, Tensor<T> scale,
                            Tensor<T> statistics, Tensor<T> dsum, Tensor<T> dnormed, Tensor<T> dresidual,
                            bool adds_to_residual, MaybeRounded<T> dbranch, bool adds_to_branch, Tensor<T> dscale,
                            Tensor<T> dbias);
template <class T>
void residual_norm_backward(CudaContext& device, RowNorm kind, Tensor<T> sum, DropoutMask<T> mask, Tensor<T> scale,
                            Tensor<T> statistics, Tensor<T> dsum, Tensor<T> dnormed, Tensor<T> dresidual,
                            bool adds_to_residual, MaybeRounded<T> dbranch, bool adds_to_branch, Tensor<T> dscale,
                            Tensor<T> dbias);

}  // namespace heed
