#pragma once

#include <span>

#include "heed/autograd/graph.h"

namespace heed {

// Elementary ops: the sum of two tensors, the product of two tensors element by element, the product with a constant or
// with a variable number, the sum of all elements, and the weighted sum of several tensors. Models and tests compose
// functions from these ops for which heed has no single op.

/// Computes the sum y = a + b of two tensors of the same shape. Backward: da += dy, db += dy.
template <class T>
Variable<T> add(Graph<T>& graph, const Variable<T>& a, const Variable<T>& b);

/// Computes the product y = a b, element by element, of two tensors of the same shape. Saved for the backward pass: a
/// and b. Backward: da += dy b, db += dy a.
template <class T>
Variable<T> multiply(Graph<T>& graph, const Variable<T>& a, const Variable<T>& b);

/// Computes the product y = factor x with a constant factor. Backward: dx += factor dy.
template <class T>
Variable<T> multiply(Graph<T>& graph, const Variable<T>& x, std::type_identity_t<T> factor);

/// Computes the product y = factor x with a factor that is a variable of one element. Saved for the backward pass: x
/// and factor. Backward: dx += factor dy, dfactor += sum(dy x).
template <class T>
Variable<T> scale(Graph<T>& graph, const Variable<T>& x, const Variable<T>& factor);

/// Computes the scalar y = sum of all elements of x. Backward: dy is added to every element of dx.
template <class T>
Variable<T> sum(Graph<T>& graph, const Variable<T>& x);

/// Computes the sum y = sum_j weights[j] x[j] of L tensors of the same shape. The array `x` must stay in memory until
/// the backward pass has ended.
///
/// Shapes: weights [L], x[j] any -> y the same. Saved for the backward pass: weights and x. Backward:
/// dx[j] += weights[j] dy, dweights[j] += sum of dy x[j] over all elements.
template <class T>
Variable<T> weighted_sum(Graph<T>& graph, const Variable<T>& weights, std::span<const Variable<T>> x);

/// Computes to = beta * to + a * b, element by element. beta is 0 or 1; with beta 0, `to` is not read.
template <class T>
void multiply_into(CpuContext& device, Tensor<T> a, Tensor<T> b, T beta, Tensor<T> to);
template <class T>
void multiply_into(CudaContext& device, Tensor<T> a, Tensor<T> b, T beta, Tensor<T> to);
/// Computes to = beta * to + factor * x, element by element. beta is 0 or 1; with beta 0, `to` is not read.
template <class T>
void scale_into(CpuContext& device, Tensor<T> x, T factor, T beta, Tensor<T> to);
template <class T>
void scale_into(CudaContext& device, Tensor<T> x, T factor, T beta, Tensor<T> to);
/// Computes to = beta * to + factor[0] * x, element by element, with a factor in the memory of the device. beta is 0 or
/// 1; with beta 0, `to` is not read.
template <class T>
void scale_by_element(CpuContext& device, Tensor<T> x, const T* factor, std::type_identity_t<T> beta, Tensor<T> to);
template <class T>
void scale_by_element(CudaContext& device, Tensor<T> x, const T* factor, std::type_identity_t<T> beta, Tensor<T> to);
/// Computes to[0] = beta * to[0] + the sum of all elements of x. beta is 0 or 1; with beta 0, to[0] is not read.
template <class T>
void sum_into(CpuContext& device, Tensor<T> x, std::type_identity_t<T> beta, T* to);
template <class T>
void sum_into(CudaContext& device, Tensor<T> x, std::type_identity_t<T> beta, T* to);
/// Computes the backward pass of sum(): adds the scalar gradient dy[0] to every element of dx.
template <class T>
void sum_backward(CpuContext& device, const T* dy, Tensor<T> dx);
template <class T>
void sum_backward(CudaContext& device, const T* dy, Tensor<T> dx);

}  // namespace heed
