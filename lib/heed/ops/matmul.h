#pragma once

#include "heed/autograd/graph.h"

namespace heed {

/// y = a b, for each matrix of a batch.
///
/// Shapes: a [M, K], b [K, N] -> y [M, N]; or a [B, M, K], b [B, K, N] -> y [B, M, N].
/// Kept for the way back: a and b. Backward: da += dy b^T, db += a^T dy.
template <class T>
Variable<T> matmul(Graph<T>& graph, const Variable<T>& a, const Variable<T>& b);

/// y = x with the last two axes exchanged (a copy).
///
/// Shapes: x [M, N] -> y [N, M]; or x [B, M, N] -> y [B, N, M]. Backward: dx += dy^T.
template <class T>
Variable<T> transpose(Graph<T>& graph, const Variable<T>& x);

template <class T>
void matmul_forward(CpuContext& device, Tensor<T> a, Tensor<T> b, Tensor<T> y);
/// Adds to da and db, each where present.
template <class T>
void matmul_backward(CpuContext& device, Tensor<T> a, Tensor<T> b, Tensor<T> dy, Tensor<T> da, Tensor<T> db);
/// to = beta to + x^T, beta 0 (what `to` held is not read) or 1.
template <class T>
void transpose_into(CpuContext& device, Tensor<T> x, T beta, Tensor<T> to);

}  // namespace heed
