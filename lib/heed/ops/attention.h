#pragma once

#include "heed/autograd/graph.h"
#include "heed/ops/dropout_mask.h"
#include "heed/tensor/packed.h"

namespace heed {

/// Columns column .. column + D of a matrix [N, stride]: query, key or value within a fused projection [N, 3D].
template <class T>
struct HeadsInput {
  Variable<T> matrix;
  std::int64_t column = 0;
};

struct AttentionOptions {
  int heads = 1;        ///< H; divides D
  bool causal = false;  ///< query i sees keys 0 .. i of as many
  double dropout = 0;   ///< share of the probabilities that is dropped; none where the graph is not recording
};

/// Number of probabilities of a packed attention: sum over sequences of H Tq Tk.
std::int64_t attention_weights_size(PackedOffsets queries, PackedOffsets keys, int heads);
/// Where the matrix [Tq, Tk] of a sequence's head begins: sequences one after another, in each its heads.
std::int64_t attention_weights_offset(PackedOffsets queries, PackedOffsets keys, int heads, int sequence, int head);

/// Multi-head scaled dot-product attention within each sequence of a packed batch (Vaswani et al. 2017, 3.2.1 and
/// 3.2.2 without the projections): head h of d = D / H columns is softmax(Q K^T / sqrt(d)) V.
///
/// Shapes: query [Nq, ..], key and value [Nk, ..] -> [Nq, D]. The queries' offsets name as many sequences as the keys';
/// a query of a sequence without keys gives zeros. `weights_out`, where given, receives the probabilities before
/// dropout, attention_weights_size() numbers. The offsets must live until the way back is done.
/// Kept for the way back: the probabilities, packed, and the mask of the dropout.
/// Backward: with G = dO V^T through the dropout and dS = P (G - rowsum(P G)) / sqrt(d): dQ += dS K, dK += dS^T Q,
/// dV += dropout(P)^T dO, each into its slice, where present.
template <class T>
Variable<T> attention(Graph<T>& graph, HeadsInput<T> query, HeadsInput<T> key, HeadsInput<T> value, std::int64_t width,
                      PackedOffsets queries, PackedOffsets keys, const AttentionOptions& options,
                      T* weights_out = nullptr);

/// What the kernels work on: pointers to the first used column, strides in elements. Gradients may be null.
template <class T>
struct AttentionArrays {
  const T *query, *key, *value;
  T *query_gradient, *key_gradient, *value_gradient;  ///< strides as the values'
  /// Whether there is nothing in a gradient yet, so that it is written and not added to.
  bool query_gradient_empty, key_gradient_empty, value_gradient_empty;
  std::int64_t query_stride, key_stride, value_stride;
  std::int64_t width;  ///< D
  int heads;
  bool causal;
  PackedOffsets queries, keys;
  DropoutMask<T> mask;  ///< of the probabilities
};

/// Queries are taken in blocks of this many: a block's logits stay in cache, and a causal block needs no key after it.
constexpr std::int64_t kAttentionQueryBlock = 48;

/// Elements that weights and mask have beyond the probabilities: the kernels move whole vectors.
constexpr std::int64_t kAttentionSlack = 16;

/// out [Nq, D]; `weights`, where given, receives the probabilities before dropout and zeros in its slack.
template <class T>
void attention_forward(CpuContext& device, const AttentionArrays<T>& arrays, T* weights, T* out);

/// Adds to the gradients that are present, or writes them where they are empty; `weights` as attention_forward left
/// them.
template <class T>
void attention_backward(CpuContext& device, const AttentionArrays<T>& arrays, const T* weights, const T* out_gradient);

}  // namespace heed
