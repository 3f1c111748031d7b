// The elementary softmax and log-softmax. The programs call neither: they compute softmax within larger ops, on rows
// that are still in the cache: attention (ops/attention.h, ops/decode_attention.h), the loss (ops/cross_entropy.h) and
// the selection of the likeliest tokens (ops/top_k.h). The elementary ops are for users of the library.
#pragma once

#include "heed/autograd/graph.h"

namespace heed {

/// Over the last axis: y_i = exp(x_i) / sum_j exp(x_j), computed with the row's maximum taken off.
///
/// Shapes: x [.., D] -> y the same. A row of minus infinities gives zeros.
/// Kept for the way back: y. Backward: dx += y (dy - sum(y dy)).
template <class T>
Variable<T> softmax(Graph<T>& graph, const Variable<T>& x);

/// Over the last axis: y_i = x_i - log sum_j exp(x_j).
///
/// Shapes: x [.., D] -> y the same. Kept for the way back: y. Backward: dx += dy - exp(y) sum(dy).
template <class T>
Variable<T> log_softmax(Graph<T>& graph, const Variable<T>& x);

template <class T>
void softmax_forward(CpuContext& device, Tensor<T> x, Tensor<T> y);
template <class T>
void softmax_backward(CpuContext& device, Tensor<T> y, Tensor<T> dy, Tensor<T> dx);

/// x and y may be the same.
template <class T>
void log_softmax_forward(CpuContext& device, Tensor<T> x, Tensor<T> y);
template <class T>
void log_softmax_backward(CpuContext& device, Tensor<T> y, Tensor<T> dy, Tensor<T> dx);

}  // namespace heed
