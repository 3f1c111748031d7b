#pragma once

#include "heed/autograd/graph.h"

namespace heed {

/// Computes the matrix product y = a b, of two matrices or of each pair of matrices in two batches.
///
/// Shapes: a [M, K], b [K, N] -> y [M, N]; or a [B, M, K], b [B, K, N] -> y [B, M, N].
/// Saved for the backward pass: a and b. Backward: da += dy b^T, db += a^T dy.
template <class T>
Variable<T> matmul(Graph<T>& graph, const Variable<T>& a, const Variable<T>& b);

/// Computes the transpose y of x: a copy of x with the last two axes exchanged.
///
/// Shapes: x [M, N] -> y [N, M]; or x [B, M, N] -> y [B, N, M]. Backward: dx += dy^T.
template <class T>
Variable<T> transpose(Graph<T>& graph, const Variable<T>& x);

/// Computes y = a b for each matrix of a batch (see matmul()).
template <class T>
void matmul_forward(CpuContext& device, Tensor<T> a, Tensor<T> b, Tensor<T> y);
template <class T>
void matmul_forward(CudaContext& device, Tensor<T> a, Tensor<T> b, Tensor<T> y);
/// Computes the backward pass of matmul(): adds dy b^T to da and a^T dy to db; an empty gradient tensor is skipped.
template <class T>
void matmul_backward(CpuContext& device, Tensor<T> a, Tensor<T> b, Tensor<T> dy, Tensor<T> da, Tensor<T> db);
template <class T>
void matmul_backward(CudaContext& device, Tensor<T> a, Tensor<T> b, Tensor<T> dy, Tensor<T> da, Tensor<T> db);
/// Computes to = beta * to + x^T for each matrix of a batch. beta is 0 or 1; with beta 0, `to` is not read.
template <class T>
void transpose_into(CpuContext& device, Tensor<T> x, T beta, Tensor<T> to);
template <class T>
void transpose_into(CudaContext& device, Tensor<T> x, T beta, Tensor<T> to);

}  // namespace heed
