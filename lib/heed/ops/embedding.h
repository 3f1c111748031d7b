#pragma once

#include <cstdint>
#include <span>

#include "heed/ops/dropout_mask.h"

namespace heed {

/// y = dropout(scale weight[id] + position_table[position]): the first layer of a Transformer (Vaswani et al. 2017,
/// 3.4 and 3.5).
///
/// Shapes: ids [N] in 0 .. V-1, positions [N] in 0 .. L-1, weight [V, D], position_table [L, D] -> y [N, D]. The table
/// may be absent (then positions is not looked at), untracked (sinusoids) or tracked (learned). p as in dropout().
/// Throws Error naming an id or position outside its table. The memory of ids and positions must live until the way
/// back is done.
/// Kept for the way back: ids, positions, the mask. Backward, with g = dy as dropout leaves it:
/// dweight[id] += scale g, dposition_table[position] += g, row after row.
template <class T>
Variable<T> embedding(Graph<T>& graph, std::span<const std::int32_t> ids, std::span<const std::int32_t> positions,
                      const Variable<T>& weight, const Variable<T>& position_table, T scale, double p);

/// Which rows of which tables; `positions` is null where there is no table.
struct EmbeddingRows {
  const std::int32_t* ids = nullptr;
  const std::int32_t* positions = nullptr;
  std::int64_t count = 0;
};

template <class T>
void embedding_forward(CpuContext& device, EmbeddingRows rows, Tensor<T> weight, Tensor<T> position_table, T scale,
                       DropoutMask<T> mask, Tensor<T> y);

/// Adds to dweight and dposition_table, each where present.
template <class T>
void embedding_backward(CpuContext& device, EmbeddingRows rows, T scale, DropoutMask<T> mask, Tensor<T> dy,
                        Tensor<T> dweight, Tensor<T> dposition_table);

}  // namespace heed
