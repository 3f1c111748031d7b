#pragma once

#include <cstdint>
#include <span>

#include "heed/autograd/graph.h"
#include "heed/tensor/packed.h"

namespace heed {

/// Rotates queries and keys by the positions of their tokens (Su et al. 2021, section 3.2.2). Each head has d columns;
/// the columns 2i and 2i + 1 of a token at position p are a point of the plane, which is rotated by the angle
/// p * 10000^(-2i / d). The dot product of a rotated query and a rotated key depends on the positions only through the
/// distance of the two tokens.
///
/// Works in place: returns `x` itself, whose value is overwritten, and the backward pass overwrites the gradient of x.
/// x must therefore be a result of the graph whose value no earlier op reads in its backward pass, such as the result
/// of linear() without an activation function.
/// Shapes: x [N, C] -> [N, C]. The first `width` columns are rotated, head after head; in a projection to query, key
/// and value [N, 3D] these are the 2D columns of query and key. `packed` are the offsets of the sequences; positions
/// count from 0 in each sequence. `table` [L, 2d] has a row for each position: the cosine for each of the head's
/// columns, and then the sine, negative for even columns (fill_sinusoids() with PositionEncoding::rotary). d is even
/// and divides `width`; no sequence is longer than L. The offsets and the table must stay in memory until the backward
/// pass has ended.
/// Backward: dx is rotated by the negative angles.
template <class T>
Variable<T> rotary(Graph<T>& graph, const Variable<T>& x, std::int64_t width, PackedOffsets packed, Tensor<T> table);

/// Rotates, in place, the first `width` columns of each row of x [N, C] by the angles of the row's position in its
/// sequence, or by the negative angles where `back` is true (see rotary()).
template <class T>
void rotary_forward(CpuContext& device, Tensor<T> x, std::int64_t width, PackedOffsets packed, Tensor<T> table,
                    bool back = false);
template <class T>
void rotary_forward(CudaContext& device, Tensor<T> x, std::int64_t width, PackedOffsets packed, Tensor<T> table,
                    bool back = false);

/// Rotates, in place, the first `width` columns of row r of x [N, C] by the angles of the position lengths[r] - 1: the
/// queries and keys of one decoding step, for rows (hypotheses) of lengths[r] tokens. A row has the bits that the token
/// has when rotary_forward() rotates a whole sequence.
template <class T>
void rotary_step(CpuContext& device, Tensor<T> x, std::int64_t width, std::span<const std::int32_t> lengths,
                 Tensor<T> table);
template <class T>
void rotary_step(CudaContext& device, Tensor<T> x, std::int64_t width, std::span<const std::int32_t> lengths,
                 Tensor<T> table);

}  // namespace heed
