#pragma once

#include <cstdint>
#include <span>

#include "heed/autograd/graph.h"
#include "heed/ops/gemm/maybe_rounded.h"

namespace heed {

/// Applies stochastic depth (Huang et al. 2016) to the output of a sublayer, sequence by sequence: y = x k / (1 - p),
/// where k is 0 with probability p and otherwise 1, once for all rows of a sequence. It is the "row" mode of
/// torchvision's StochasticDepth.
///
/// Shapes: x [N, D], whose rows belong to the sequences that Graph::set_rows() named -> y [N, D]. p is rounded to a
/// multiple of 1/65536. Returns x itself where the rounded p is 0 or the graph is not recording; otherwise y takes the
/// memory of x, whose value no backward pass may read, unless x is stored as bfloat16. Saved for the backward pass: a
/// factor for each sequence. Backward: dx += dy k / (1 - p).
template <class T>
Variable<T> stochastic_depth(Graph<T>& graph, const Variable<T>& x, double p);

/// Multiplies the rows of sequence b by factors[b]: y = x * factor. `y` may be x. On a GPU x may be stored as bfloat16
/// alone. Where `add` is true, adds the products to y instead.
template <class T>
void scale_sequences(CpuContext& device, MaybeRounded<T> x, PackedOffsets sequences, std::span<const T> factors,
                     bool add, Tensor<T> y);
template <class T>
void scale_sequences(CudaContext& device, MaybeRounded<T> x, PackedOffsets sequences, std::span<const T> factors,
                     bool add, Tensor<T> y);

}  // namespace heed
