#pragma once

#include "heed/autograd/graph.h"
#include "heed/ops/dropout_mask.h"
#include "heed/tensor/packed.h"

namespace heed {

/// The query, key or value of an attention: D columns, from `column` on, of a matrix [N, stride]. The matrix may be a
/// projection [N, 3D] that holds query, key and value side by side.
template <class T>
struct HeadsInput {
  Variable<T> matrix;
  std::int64_t column = 0;
};

struct AttentionOptions {
  int heads = 1;        ///< the number H of heads, which must divide D
  bool causal = false;  ///< query i attends to the keys 0 ... i only; a sequence has as many keys as queries
  double dropout = 0;   ///< the probability of dropping an attention weight; used only where the graph is recording
};

/// Returns the number of attention weights (probabilities) of a packed batch: the sum of H Tq Tk over the sequences,
/// where Tq and Tk are the numbers of queries and keys of a sequence.
std::int64_t attention_weights_size(PackedOffsets queries, PackedOffsets keys, int heads);
/// Returns the offset of the matrix [Tq, Tk] of one head of one sequence among the attention weights of a packed batch.
/// The sequences follow each other, and the matrices of a sequence's heads follow each other.
std::int64_t attention_weights_offset(PackedOffsets queries, PackedOffsets keys, int heads, int sequence, int head);

/// Computes multi-head scaled dot-product attention within each sequence of a packed batch (Vaswani et al. 2017,
/// sections 3.2.1 and 3.2.2 without the projections). Each head has d = D / H columns and computes O = dropout(P) V
/// with the probabilities P = softmax(Q K^T / sqrt(d)).
///
/// Shapes: query [Nq, ..], key and value [Nk, ..] -> [Nq, D]. `queries` and `keys` are the offsets of the same number
/// of sequences. A query of a sequence without keys gives zeros. `weights_out`, where not null, receives P before the
/// dropout, attention_weights_size() numbers. The offsets must stay in memory until the backward pass has ended.
/// Saved for the backward pass: P of all heads and the mask of the dropout.
/// Backward: with G = dO V^T, multiplied by the dropout's mask, and dS = P (G - rowsum(P G)) / sqrt(d): dQ += dS K, dK
/// += dS^T Q, dV += dropout(P)^T dO. Each gradient is added to the columns of the query, key or value; absent gradients
/// are skipped.
template <class T>
Variable<T> attention(Graph<T>& graph, HeadsInput<T> query, HeadsInput<T> key, HeadsInput<T> value, std::int64_t width,
                      PackedOffsets queries, PackedOffsets keys, const AttentionOptions& options,
                      T* weights_out = nullptr);

/// The operands of the attention kernels. Each pointer points to the first of the D columns that the attention uses.
template <class T>
struct AttentionArrays {
  const T *query, *key, *value;
  /// The gradients of query, key and value, with the strides of query, key and value; null where none is wanted.
  T *query_gradient, *key_gradient, *value_gradient;
  /// Whether the memory of a gradient holds no sum yet, so that the kernels overwrite the gradient and do not add to
  /// it.
  bool query_gradient_empty, key_gradient_empty, value_gradient_empty;
  std::int64_t query_stride, key_stride, value_stride;  ///< elements from row to row
  std::int64_t width;                                   ///< D, the number of columns of all heads together
  int heads;
  bool causal;
  PackedOffsets queries, keys;
  DropoutMask<T> mask;  ///< the dropout mask of the attention weights
};

/// The kernels take this many queries at a time: the logits of so few queries stay in the cache, and with a causal mask
/// the keys after the last of these queries are not read at all.
constexpr std::int64_t kAttentionQueryBlock = 48;

/// The number of elements by which the arrays of attention weights and of the mask are longer than needed, because the
/// kernels load and store whole vectors.
constexpr std::int64_t kAttentionSlack = 16;

/// Computes the attention, out [Nq, D]. `weights`, where not null, receives the attention weights before the dropout,
/// and zeros in the last kAttentionSlack elements.
template <class T>
void attention_forward(CpuContext& device, const AttentionArrays<T>& arrays, T* weights, T* out);

/// Computes the gradients of query, key and value from `out_gradient` [Nq, D]. Adds to a gradient, or overwrites a
/// gradient that is marked as empty; skips a null gradient. `weights` are the attention weights that
/// attention_forward() wrote.
template <class T>
void attention_backward(CpuContext& device, const AttentionArrays<T>& arrays, const T* weights, const T* out_gradient);

}  // namespace heed
