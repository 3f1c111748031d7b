#pragma once

#include "heed/autograd/graph.h"
#include "heed/ops/gemm/maybe_rounded.h"
#include "heed/ops/row_norm.h"

namespace heed {

/// Computes layer normalisation (Ba et al. 2016): y = (x - mean) / sqrt(variance + epsilon) * scale + bias, with the
/// mean and the (biased) variance of each row.
///
/// Shapes: x [N, D], scale [D], bias [D] -> y [N, D].
/// y is also rounded for linear() (see rounded_memory()).
/// Saved for the backward pass: x, and the mean and 1 / sqrt(variance + epsilon) of each row.
/// Backward, with z = (x - mean) / sqrt(variance + epsilon) and g = dy scale:
/// dx += (g - mean(g) - z mean(g z)) / sqrt(variance + epsilon), dscale += sum of dy z over the rows, dbias += sum of
/// dy over the rows.
template <class T>
Variable<T> layer_norm(Graph<T>& graph, const Variable<T>& x, const Variable<T>& scale, const Variable<T>& bias,
                       double epsilon);

/// Computes RMS normalisation (Zhang and Sennrich 2019): y = x / sqrt(mean(x^2) + epsilon) * scale, with the mean over
/// the elements of each row.
///
/// Shapes: x [N, D], scale [D] -> y [N, D].
/// y is also rounded for linear() (see rounded_memory()).
/// Saved for the backward pass: x, and 1 / sqrt(mean(x^2) + epsilon) of each row.
/// Backward, with z = x / sqrt(mean(x^2) + epsilon) and g = dy scale: dx += (g - z mean(g z)) / sqrt(mean(x^2) +
/// epsilon), dscale += sum of dy z over the rows.
template <class T>
Variable<T> rms_norm(Graph<T>& graph, const Variable<T>& x, const Variable<T>& scale, double epsilon);

/// Computes the normalisation y of x (see layer_norm() and rms_norm() for the formulas), in full precision, and rounded
/// too where y has memory for that. Stores two numbers for each row in `statistics` [N, 2], unless that tensor is
/// empty: the mean, which is 0 for RMS normalisation, and the inverse of the square root. `bias` is empty for RMS
/// normalisation.
template <class T>
void row_norm_forward(CpuContext& device, RowNorm kind, Tensor<T> x, Tensor<T> scale, Tensor<T> bias, double epsilon,
                      MaybeRounded<T> y, Tensor<T> statistics);
template <class T>
void row_norm_forward(CudaContext& device, RowNorm kind, Tensor<T> x, Tensor<T> scale, Tensor<T> bias, double epsilon,
                      MaybeRounded<T> y, Tensor<T> statistics);

/// Computes the backward pass of layer_norm() or rms_norm(): adds the gradients to dx, dscale and dbias; an empty
/// gradient tensor is skipped.
template <class T>
void row_norm_backward(CpuContext& device, RowNorm kind, Tensor<T> x, Tensor<T> scale, Tensor<T> statistics,
                       Tensor<T> dy, Tensor<T> dx, Tensor<T> dscale, Tensor<T> dbias);
template <class T>
void row_norm_backward(CudaContext& device, RowNorm kind, Tensor<T> x, Tensor<T> scale, Tensor<T> statistics,
                       Tensor<T> dy, Tensor<T> dx, Tensor<T> dscale, Tensor<T> dbias);

}  // namespace heed
