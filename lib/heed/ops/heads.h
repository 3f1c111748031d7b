// Elementary ops that rearrange the tensors of multi-head attention for padded batches, for users of the library.
// heed's own programs do not call these ops: attention() (ops/attention.h) reads each head's columns where they are.
#pragma once

#include "heed/autograd/graph.h"

namespace heed {

/// Returns x with another shape of the same size. The result has the memory of x: no number is copied.
/// Backward: dx += dy.
template <class T>
Variable<T> reshape(Graph<T>& graph, const Variable<T>& x, const Shape& shape);

/// Splits each row into heads: head h of a row has the columns h d ... h d + d - 1, with d = D / heads.
///
/// Shapes: x [B, T, D] -> y [B heads, T, d]; the heads of a sequence follow each other. Backward: dx += dy, rearranged.
template <class T>
Variable<T> split_heads(Graph<T>& graph, const Variable<T>& x, int heads);

/// Puts the heads of each row side by side, as before split_heads().
///
/// Shapes: x [B heads, T, d] -> y [B, T, heads d]. Backward: dx += dy, rearranged.
template <class T>
Variable<T> merge_heads(Graph<T>& graph, const Variable<T>& x, int heads);

/// Computes the mean over the heads of each sequence.
///
/// Shapes: x [B heads, T, S] -> y [B, T, S]. Backward: dx += dy / heads.
template <class T>
Variable<T> mean_over_heads(Graph<T>& graph, const Variable<T>& x, int heads);

/// Appends a row to every sequence: `row`, or zeros where `row` is absent.
///
/// Shapes: x [B, S, D], row [D] or absent -> y [B, S + 1, D]. Backward: dx += dy without the last row of each sequence;
/// drow += sum over the sequences of the last row of dy.
template <class T>
Variable<T> append_row(Graph<T>& graph, const Variable<T>& x, const Variable<T>& row);

/// Splits the rows of x into heads (see split_heads()): to = beta * to + the heads of x. With `merge`, goes the other
/// way: to = beta * to + the merged heads of x. Shapes: `rows` = [B, T, D]; beta is 0 or 1; with beta 0, `to` is not
/// read.
template <class T>
void rearrange_heads(CpuContext& device, const T* x, const Shape& rows, int heads, bool merge, T beta, T* to);
template <class T>
void rearrange_heads(CudaContext& device, const T* x, const Shape& rows, int heads, bool merge, T beta, T* to);
/// Computes y = mean over the heads of x (see mean_over_heads()). Shapes: x [B heads, T, S] -> y [B, T, S].
template <class T>
void mean_over_heads_forward(CpuContext& device, Tensor<T> x, int heads, Tensor<T> y);
template <class T>
void mean_over_heads_forward(CudaContext& device, Tensor<T> x, int heads, Tensor<T> y);
/// Computes the backward pass of mean_over_heads(): adds dy / heads to dx.
template <class T>
void mean_over_heads_backward(CpuContext& device, Tensor<T> dy, int heads, Tensor<T> dx);
template <class T>
void mean_over_heads_backward(CudaContext& device, Tensor<T> dy, int heads, Tensor<T> dx);
/// Copies x and `row`, or zeros where `row` is absent, to y (see append_row()).
template <class T>
void append_row_forward(CpuContext& device, Tensor<T> x, Tensor<T> row, Tensor<T> y);
template <class T>
void append_row_forward(CudaContext& device, Tensor<T> x, Tensor<T> row, Tensor<T> y);
/// Computes the backward pass of append_row(): adds to dx and drow; an empty gradient tensor is skipped.
template <class T>
void append_row_backward(CpuContext& device, Tensor<T> dy, Tensor<T> dx, Tensor<T> drow);
template <class T>
void append_row_backward(CudaContext& device, Tensor<T> dy, Tensor<T> dx, Tensor<T> drow);

}  // namespace heed
