#pragma once

#include <cstdint>
#include <span>

#include "heed/ops/dropout_mask.h"

namespace heed {

/// Computes the first layer of a Transformer, the embeddings of tokens (Vaswani et al. 2017, sections 3.4 and 3.5):
/// y = dropout(scale weight[id] + position_table[position]).
///
/// Shapes: ids [N] in 0 .. V-1, positions [N] in 0 .. L-1, weight [V, D], position_table [L, D] -> y [N, D]. The
/// position table may be absent (then `positions` is not read), a constant (sinusoids), or a learned parameter. `p` is
/// the probability of the dropout. Throws Error with the id or position that is outside the table. The memory of ids
/// and positions must stay valid until the backward pass has ended.
///
/// Saved for the backward pass: ids, positions and the dropout mask. Backward, with g = dy * mask * 1 / (1 - p):
/// dweight[id] += scale g and dposition_table[position] += g, row after row.
template <class T>
Variable<T> embedding(Graph<T>& graph, std::span<const std::int32_t> ids, std::span<const std::int32_t> positions,
                      const Variable<T>& weight, const Variable<T>& position_table, T scale, double p);

/// The rows of the weight and of the position table that an embedding reads.
struct EmbeddingRows {
  /// [count]: the row of the weight for each token.
  const std::int32_t* ids = nullptr;
  /// [count]: the row of the position table for each token, or null where the embedding has no position table.
  const std::int32_t* positions = nullptr;
  std::int64_t count = 0;  ///< the number of tokens
};

/// Computes the embeddings y [count, D] of all tokens: dropout(scale * weight[id] + position_table[position]).
template <class T>
void embedding_forward(CpuContext& device, EmbeddingRows rows, Tensor<T> weight, Tensor<T> position_table, T scale,
                       DropoutMask<T> mask, Tensor<T> y);
template <class T>
void embedding_forward(CudaContext& device, EmbeddingRows rows, Tensor<T> weight, Tensor<T> position_table, T scale,
                       DropoutMask<T> mask, Tensor<T> y);

/// Computes the backward pass of embedding(): adds the gradients of all tokens to the rows of dweight and
/// dposition_table; an empty gradient tensor is skipped.
template <class T>
void embedding_backward(CpuContext& device, EmbeddingRows rows, T scale, DropoutMask<T> mask, Tensor<T> dy,
                        Tensor<T> dweight, Tensor<T> dposition_table);
template <class T>
void embedding_backward(CudaContext& device, EmbeddingRows rows, T scale, DropoutMask<T> mask, Tensor<T> dy,
                        Tensor<T> dweight, Tensor<T> dposition_table);

}  // namespace heed
