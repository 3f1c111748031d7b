#pragma once

#include "heed/ops/attention.h"

namespace heed {

/// Computes multi-head additive attention within each sequence of a packed batch (Bahdanau et al. 2015, section 3.1 and
/// appendix A.1.2, without the projections). Head h has d = D / H columns and scores a query q and a key k by
/// score = sum over the columns c of v_c tanh(q_c + k_c), where v, the head's part of `scorer`, is learnt. Then P =
/// softmax(scores) and O = dropout(P) V, as in attention().
///
/// Shapes: query [Nq, ..], key and value [Nk, ..], scorer [D] -> [Nq, D]. The arguments and errors are those of
/// attention(), and so is the variable `weights`. A query's result does not depend on the other queries and
/// sequences, bit for bit.
/// Saved for the backward pass: P of all heads and the mask of the dropout. The values of tanh, D numbers for each
/// pair of a query and a key, are computed again.
/// Backward: with dS, the gradient of the scores, as in attention() (without the factor 1 / sqrt(d)), and
/// t = tanh(q + k): dq += sum over keys of dS v (1 - t^2), dk += the same sum over queries, dv += sum over queries and
/// keys of dS t, and dV += dropout(P)^T dO. Absent gradients are skipped.
template <class T>
Variable<T> additive_attention(Graph<T>& graph, HeadsInput<T> query, HeadsInput<T> key, HeadsInput<T> value,
                               const Variable<T>& scorer, std::int64_t width, PackedOffsets queries, PackedOffsets keys,
                               const AttentionOptions& options, const Variable<T>& weights = {});

/// The operands of the additive attention kernels: those of attention, and the scorer [D] with its gradient, which is
/// null where the caller does not want it.
template <class T>
struct AdditiveAttentionArrays {
  AttentionArrays<T> attention;
  const T* scorer;
  T* scorer_gradient;
};

/// Computes the additive attention `out` [Nq, D] of a packed batch (see additive_attention() for the formula).
/// `weights`, where not null, receives the attention weights before the dropout, and zeros in the last kAttentionSlack
/// elements.
template <class T>
void additive_attention_forward(CpuContext& device, const AdditiveAttentionArrays<T>& arrays, T* weights, T* out);
template <class T>
void additive_attention_forward(CudaContext& device, const AdditiveAttentionArrays<T>& arrays, T* weights, T* out);

/// Computes the gradients of query, key, value and scorer from `out_gradient` [Nq, D]. Adds to a gradient, or
/// overwrites a gradient that is marked as empty; skips a null gradient. `weights` are the attention weights that
/// additive_attention_forward() wrote.
template <class T>
void additive_attention_backward(CpuContext& device, const AdditiveAttentionArrays<T>& arrays, const T* weights,
                                 const T* out_gradient);
template <class T>
void additive_attention_backward(CudaContext& device, const AdditiveAttentionArrays<T>& arrays, const T* weights,
                                 const T* out_gradient);

}  // namespace heed
