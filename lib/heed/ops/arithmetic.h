#pragma once

#include "heed/autograd/graph.h"

namespace heed {

// Element by element: for models and tests that compose what has no op of its own.

/// y = a + b, of one shape. Backward: da += dy, db += dy.
template <class T>
Variable<T> add(Graph<T>& graph, const Variable<T>& a, const Variable<T>& b);

/// y = a b, of one shape. Kept: a and b. Backward: da += dy b, db += dy a.
template <class T>
Variable<T> multiply(Graph<T>& graph, const Variable<T>& a, const Variable<T>& b);

/// y = factor x. Backward: dx += factor dy.
template <class T>
Variable<T> multiply(Graph<T>& graph, const Variable<T>& x, std::type_identity_t<T> factor);

/// Scalar y = sum of all elements of x. Backward: dx += dy, everywhere.
template <class T>
Variable<T> sum(Graph<T>& graph, const Variable<T>& x);

/// to = beta to + a b, beta 0 (what `to` held is not read) or 1.
template <class T>
void multiply_into(CpuContext& device, Tensor<T> a, Tensor<T> b, T beta, Tensor<T> to);
/// to = beta to + factor x, beta 0 (what `to` held is not read) or 1.
template <class T>
void scale_into(CpuContext& device, Tensor<T> x, T factor, T beta, Tensor<T> to);
template <class T>
T sum_forward(CpuContext& device, Tensor<T> x);
/// dx += dy everywhere.
template <class T>
void sum_backward(CpuContext& device, T dy, Tensor<T> dx);

}  // namespace heed
