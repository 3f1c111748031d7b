#pragma once

#include "heed/autograd/graph.h"
#include "heed/ops/dropout_mask.h"
#include "heed/ops/position_bias.h"
#include "heed/ops/rounded_result.h"
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
  /// The number H of heads. H must divide the width D of a query.
  int heads = 1;
  /// true: query i attends to the keys 0 ... i only; then each sequence must have as many keys as queries.
  bool causal = false;
  /// The probability of dropping an attention weight; used in training only, that is, where the graph records its ops.
  double dropout = 0;
  /// Which ops will read the result. If only linear() reads it, a training with bfloat16 products stores the result as
  /// bfloat16 alone: on a CPU always, on a GPU where the attention is computed from bfloat16 numbers.
  ResultUse use = ResultUse::any;
};

/// Returns the number of attention weights (probabilities) of a packed batch: the sum of heads * Tq * Tk over the
/// sequences, where Tq and Tk are the numbers of queries and keys of a sequence.
std::int64_t attention_weights_size(PackedOffsets queries, PackedOffsets keys, int heads);
/// Returns the offset of the matrix [Tq, Tk] of one head of one sequence among the attention weights of a packed batch.
/// The sequences follow each other, and the matrices of a sequence's heads follow each other.
std::int64_t attention_weights_offset(PackedOffsets queries, PackedOffsets keys, int heads, int sequence, int head);

/// Computes multi-head scaled dot-product attention within each sequence of a packed batch (Vaswani et al. 2017,
/// sections 3.2.1 and 3.2.2 without the projections). Each head has d = D / H columns and computes O = dropout(P) V
/// with the probabilities P = softmax(Q K^T / sqrt(d)).
///
/// Shapes: query [Nq, ..], key and value [Nk, ..] -> [Nq, D]. `queries` and `keys` are the offsets of the same number
/// of sequences. A query of a sequence without keys gives zeros. `weights`, where present, is a variable that
/// attention_weights() created just before; it receives P before the dropout, and other ops may compute with it. The
/// offsets must stay in memory until the backward pass has ended.
/// Query, key and value may be stored as bfloat16 alone (ResultUse::attention). Their gradients then are, too, where
/// the attention is computed from bfloat16 numbers and reads all columns of the matrices. `positions` are the terms
/// that positions add to a self-attention (see position_bias.h); each sequence must then have as many keys as queries.
/// Saved for the backward pass: P of all heads (on a GPU the normalisers of the softmaxes, from which P is computed
/// again), and the mask of the dropout.
/// Backward: with G = dO V^T, multiplied by the dropout's mask, plus the gradient of `weights`, and with
/// dS = P (G - rowsum(P G)) / sqrt(d): dQ += dS K, dK += dS^T Q, dV += dropout(P)^T dO. Each gradient is added to the
/// columns of the query, key or value; absent gradients are skipped. A bias of the logits gets the sums of sqrt(d) dS
/// over the pairs of query and key at each distance; a bias of windows gets, for each shape of windows, the sum of the
/// matrices sqrt(d) dS of all windows of that shape. Relative vectors count as further keys and values: G gets dO a^V,
/// dQ gets dS a^K, and the gradients of a^K and a^V are sums like dK and dV, over all pairs at a distance.
template <class T>
Variable<T> attention(Graph<T>& graph, HeadsInput<T> query, HeadsInput<T> key, HeadsInput<T> value, std::int64_t width,
                      PackedOffsets queries, PackedOffsets keys, const AttentionOptions& options,
                      const Variable<T>& weights = {}, const PositionBias<T>& positions = {});

/// Creates the variable that receives the attention weights of an attention: attention_weights_size() numbers, and
/// kAttentionSlack elements without a meaning.
template <class T>
Variable<T> attention_weights(Graph<T>& graph, PackedOffsets queries, PackedOffsets keys, int heads);

/// The operands of the attention kernels. Each pointer points to the first of the D columns that the attention uses.
template <class T>
struct AttentionArrays {
  const T *query, *key, *value;
  /// The gradients of query, key and value, with the strides of query, key and value; null where the caller does not
  /// want a gradient.
  T *query_gradient, *key_gradient, *value_gradient;
  /// True where a gradient holds no sum yet: the kernels then overwrite the gradient; otherwise they add to it.
  bool overwrite_query_gradient, overwrite_key_gradient, overwrite_value_gradient;
  /// The number of elements from the start of one row of query, key or value to the start of the next row.
  std::int64_t query_stride, key_stride, value_stride;
  /// D, the number of columns of all heads together.
  std::int64_t width;
  int heads;
  bool causal;
  PackedOffsets queries, keys;
  DropoutMask<T> mask;  ///< the dropout mask of the attention weights
  PositionArrays<T> positions = {};
  /// Receives the attention weights before the dropout, and kAttentionSlack zeros, for other ops; null where none wants
  /// them.
  T* weights = nullptr;
  /// The gradient of the attention weights before the dropout that other ops have computed; null where there is none.
  const T* weights_gradient = nullptr;
  /// Query, key and value, and their gradients, if they are stored as bfloat16; null otherwise. The strides are those
  /// above. The kernels overwrite such a gradient instead of adding to it.
  struct Rounded {
    const Bfloat16 *query = nullptr, *key = nullptr, *value = nullptr;
    Bfloat16 *query_gradient = nullptr, *key_gradient = nullptr, *value_gradient = nullptr;
  };
  Rounded rounded = {};
};

/// The number of queries that the attention kernels process at a time. The attention logits of so few queries stay in
/// the cache, and with a causal mask the keys after the last of these queries are not read at all.
constexpr std::int64_t kAttentionQueryBlock = 48;

/// The number of unused elements at the end of the arrays of attention weights and of dropout masks. The kernels load
/// and store whole vectors, which may reach beyond the last weight.
constexpr std::int64_t kAttentionSlack = 16;

/// Tells whether an attention is computed from numbers that are rounded to bfloat16. The tensor cores of a GPU do so,
/// with Precision::bfloat16, if a head has at most 128 columns, no other op reads the attention weights, and the
/// attention has no relative vectors. A CPU never does so.
template <class T>
bool attends_in_bfloat16(const CpuContext&, const AttentionArrays<T>&) {
  return false;
}
template <class T>
bool attends_in_bfloat16(const CudaContext& device, const AttentionArrays<T>& a) {
  return std::is_same_v<T, float> && takes_bfloat16(device) && a.width / a.heads <= 128 && !a.weights &&
         !a.weights_gradient && !a.positions.relative_keys;
}

/// Tells whether attention_forward() can store its result as bfloat16.
template <class T>
bool rounds_attention(const CpuContext& device, const AttentionArrays<T>&) {
  return std::is_same_v<T, float> && takes_bfloat16(device);
}
template <class T>
bool rounds_attention(const CudaContext& device, const AttentionArrays<T>& a) {
  return attends_in_bfloat16(device, a);
}

/// Returns the memory in which attention_forward() saves data about the softmaxes for attention_backward(). On a CPU
/// the data are the attention weights: the memory is arrays.weights, or, if arrays.weights is null, memory of the
/// arena. On a GPU the data are the logarithms of the normalisers of the softmaxes. Returns null if no pass reads the
/// data, that is, if arrays.weights is null and the graph is not `recording`.
template <class T>
T* attention_kept(CpuContext& device, const AttentionArrays<T>& arrays, bool recording);
template <class T>
T* attention_kept(CudaContext& device, const AttentionArrays<T>& arrays, bool recording);

/// Computes the attention `out` [Nq, D] of a packed batch (see attention() for the formula). `kept` is what
/// attention_kept() returned. `out` may be stored as bfloat16 where rounds_attention() is true.
template <class T>
void attention_forward(CpuContext& device, const AttentionArrays<T>& arrays, T* kept, MaybeRounded<T> out);
template <class T>
void attention_forward(CudaContext& device, const AttentionArrays<T>& arrays, T* kept, MaybeRounded<T> out);

/// Computes the gradients of query, key and value from `out_gradient` [Nq, D]. Adds to a gradient, or overwrites a
/// gradient that is marked as empty; skips a null gradient. `kept` is what attention_forward() kept, and `out` what it
/// computed. `out_gradient` may be stored as bfloat16 on a GPU.
template <class T>
void attention_backward(CpuContext& device, const AttentionArrays<T>& arrays, const T* kept, MaybeRounded<T> out,
                        MaybeRounded<T> out_gradient);
template <class T>
void attention_backward(CudaContext& device, const AttentionArrays<T>& arrays, const T* kept, MaybeRounded<T> out,
                        MaybeRounded<T> out_gradient);

}  // namespace heed
