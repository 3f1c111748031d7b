#pragma once

#include "heed/autograd/graph.h"

namespace heed {

/// Computes the sum y = sigmoid(a) x + sigmoid(b) z of two tensors, each multiplied by a gate, element by element: the
/// gates of an average attention network (Zhang et al. 2018, equations 5 and 6).
///
/// Shapes: a, x, b, z any, all the same -> y the same. Saved for the backward pass: a, x, b and z; not y.
/// Backward: dx += s dy, da += x s (1 - s) dy with s = sigmoid(a), and the same for z and b.
template <class T>
Variable<T> gated_sum(Graph<T>& graph, const Variable<T>& a, const Variable<T>& x, const Variable<T>& b,
                      const Variable<T>& z);

/// Computes y = sigmoid(a) x + sigmoid(b) z.
template <class T>
void gated_sum_forward(CpuContext& device, Tensor<T> a, Tensor<T> x, Tensor<T> b, Tensor<T> z, Tensor<T> y);
template <class T>
void gated_sum_forward(CudaContext& device, Tensor<T> a, Tensor<T> x, Tensor<T> b, Tensor<T> z, Tensor<T> y);
/// Computes the gradients of one term sigmoid(a) x of a gated sum: adds to da and dx. An empty tensor is skipped.
template <class T>
void gated_sum_backward(CpuContext& device, Tensor<T> a, Tensor<T> x, Tensor<T> dy, Tensor<T> da, Tensor<T> dx);
template <class T>
void gated_sum_backward(CudaContext& device, Tensor<T> a, Tensor<T> x, Tensor<T> dy, Tensor<T> da, Tensor<T> dx);

}  // namespace heed
