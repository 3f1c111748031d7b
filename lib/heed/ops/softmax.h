// The elementary ops softmax and log-softmax, for kernel regression (nn/kernel_pooling.h) and for users of the library.
// Models compute softmax within larger ops, on rows that are still in the cache: attention (ops/attention.h,
// ops/decode_attention.h), the loss (ops/cross_entropy.h) and the selection of the likeliest tokens (ops/top_k.h).
#pragma once

#include "heed/autograd/graph.h"

namespace heed {

/// Computes the softmax over the last axis: y_i = exp(x_i) / sum_j exp(x_j). The row's maximum is subtracted from x
/// first, so that exp does not overflow.
///
/// Shapes: x [.., D] -> y the same. A row of minus infinities gives zeros.
/// Saved for the backward pass: y. Backward: dx += y (dy - sum(y dy)).
template <class T>
Variable<T> softmax(Graph<T>& graph, const Variable<T>& x);

/// Computes the logarithm of the softmax over the last axis: y_i = x_i - log sum_j exp(x_j).
///
/// Shapes: x [.., D] -> y the same. Saved for the backward pass: y. Backward: dx += dy - exp(y) sum(dy).
template <class T>
Variable<T> log_softmax(Graph<T>& graph, const Variable<T>& x);

/// Computes y = softmax(x) for each row.
template <class T>
void softmax_forward(CpuContext& device, Tensor<T> x, Tensor<T> y);
template <class T>
void softmax_forward(CudaContext& device, Tensor<T> x, Tensor<T> y);
/// Computes the backward pass of softmax(): adds y (dy - sum(y dy)) to dx.
template <class T>
void softmax_backward(CpuContext& device, Tensor<T> y, Tensor<T> dy, Tensor<T> dx);
template <class T>
void softmax_backward(CudaContext& device, Tensor<T> y, Tensor<T> dy, Tensor<T> dx);

/// Computes y = log softmax(x) for each row. y may be the same memory as x.
template <class T>
void log_softmax_forward(CpuContext& device, Tensor<T> x, Tensor<T> y);
template <class T>
void log_softmax_forward(CudaContext& device, Tensor<T> x, Tensor<T> y);
/// Computes the backward pass of log_softmax(): adds dy - exp(y) sum(dy) to dx.
template <class T>
void log_softmax_backward(CpuContext& device, Tensor<T> y, Tensor<T> dy, Tensor<T> dx);
template <class T>
void log_softmax_backward(CudaContext& device, Tensor<T> y, Tensor<T> dy, Tensor<T> dx);

}  // namespace heed
