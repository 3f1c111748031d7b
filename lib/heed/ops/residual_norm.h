#pragma once

#include "heed/ops/dropout_mask.h"

namespace heed {

/// The two results of residual_norm(). Post-norm goes on with `normed` alone, pre-norm with both.
template <class T>
struct ResidualNorm {
  Variable<T> sum, normed;
};

/// sum = residual + dropout(branch), normed = layer_norm(sum), in one pass over the rows.
///
/// Shapes: residual [N, D], branch [N, D], scale [D], bias [D] -> sum, normed [N, D]. p as in dropout().
///
/// `memory`, where given, becomes the sum. It may be the branch's value, unless that is read later, or on the way back
/// of the op it comes from (as a ReLU's is).
///
/// Kept for the way back: sum, the mask, mean and 1 / sqrt(variance + epsilon) of each row.
///
/// Backward, in one pass: t = dsum + layer_norm's dx from dnormed; dresidual += t, dbranch += t as dropout leaves it;
/// dscale and dbias as in layer_norm().
template <class T>
ResidualNorm<T> residual_norm(Graph<T>& graph, const Variable<T>& residual, const Variable<T>& branch,
                              const Variable<T>& scale, const Variable<T>& bias, double epsilon, double p,
                              Tensor<T> memory = {});

/// `statistics` [N, 2], where present, receives mean and 1 / sqrt(variance + epsilon) of each row. `sum` and `normed`
/// may be `residual`, `sum` may be `branch`.
template <class T>
void residual_norm_forward(CpuContext& device, Tensor<T> residual, Tensor<T> branch, DropoutMask<T> mask,
                           Tensor<T> scale, Tensor<T> bias, double epsilon, Tensor<T> sum, Tensor<T> normed,
                           Tensor<T> statistics);

/// Adds to dscale and dbias, and to dresidual and dbranch where so told; otherwise writes these. Each where present,
/// dsum too.
template <class T>
void residual_norm_backward(CpuContext& device, Tensor<T> sum, DropoutMask<T> mask, Tensor<T> scale,
                            Tensor<T> statistics, Tensor<T> dsum, Tensor<T> dnormed, Tensor<T> dresidual,
                            bool adds_to_residual, Tensor<T> dbranch, bool adds_to_branch, Tensor<T> dscale,
                            Tensor<T> dbias);

}  // namespace heed
