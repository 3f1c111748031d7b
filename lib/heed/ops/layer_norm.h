#pragma once

#include "heed/autograd/graph.h"

namespace heed {

/// Layer normalisation (Ba et al. 2016): y = (x - mean) / sqrt(variance + epsilon) * scale + bias, with the mean and
/// the (biased) variance of each row.
///
/// Shapes: x [N, D], scale [D], bias [D] -> y [N, D].
/// Kept for the way back: x, mean and 1 / sqrt(variance + epsilon) of each row.
/// Backward, with n = (x - mean) / sqrt(variance + epsilon) and g = dy scale:
/// dx += (g - mean(g) - n mean(g n)) / sqrt(variance + epsilon), dscale += sum of dy n over rows, dbias += sum of dy.
template <class T>
Variable<T> layer_norm(Graph<T>& graph, const Variable<T>& x, const Variable<T>& scale, const Variable<T>& bias,
                       double epsilon);

/// `statistics` [N, 2], where present, receives mean and 1 / sqrt(variance + epsilon) of each row.
template <class T>
void layer_norm_forward(CpuContext& device, Tensor<T> x, Tensor<T> scale, Tensor<T> bias, double epsilon, Tensor<T> y,
                        Tensor<T> statistics);

/// Adds to dx, dscale and dbias, each where present.
template <class T>
void layer_norm_backward(CpuContext& device, Tensor<T> x, Tensor<T> scale, Tensor<T> statistics, Tensor<T> dy,
                         Tensor<T> dx, Tensor<T> dscale, Tensor<T> dbias);

}  // namespace heed
