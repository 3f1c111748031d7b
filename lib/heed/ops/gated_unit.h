#pragma once

#include "heed/ops/linear.h"

namespace heed {

/// Computes the elementwise part of a gated linear unit (Shazeer 2020): y = f(g) v, where a row of x holds the gate g
/// and, after it, the value v. With f = swish, a feed-forward layer with this op is SwiGLU; with f = gelu, it is GEGLU.
///
/// Shapes: x [N, 2F] -> y [N, F].
/// `activation` is f, gelu or swish. `use` says which ops will read y.
/// Saved for the backward pass: x. Backward: dg += dy v f'(g), dv += dy f(g).
template <class T>
Variable<T> gated_unit(Graph<T>& graph, const Variable<T>& x, Activation activation, ResultUse use = ResultUse::any);

/// Computes y of gated_unit(). y may be stored as bfloat16.
template <class T>
void gated_unit_forward(CpuContext& device, Tensor<T> x, Activation activation, MaybeRounded<T> y);
template <class T>
void gated_unit_forward(CudaContext& device, Tensor<T> x, Activation activation, MaybeRounded<T> y);

/// Computes the gradient dx of gated_unit() from the gradient dy of y. Adds to dx where `adds` is true, otherwise
/// overwrites dx. On a GPU dy may be stored as bfloat16.
template <class T>
void gated_unit_backward(CpuContext& device, Tensor<T> x, Activation activation, MaybeRounded<T> dy, Tensor<T> dx,
                         bool adds);
template <class T>
void gated_unit_backward(CudaContext& device, Tensor<T> x, Activation activation, MaybeRounded<T> dy, Tensor<T> dx,
                         bool adds);

}  // namespace heed
