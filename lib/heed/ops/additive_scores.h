// The scores of additive attention for padded batches, for users of the library. heed's own programs do not call this
// op: their batches are packed, and additive_attention() (ops/additive_attention.h) computes the whole attention.
#pragma once

#include "heed/autograd/graph.h"

namespace heed {

/// Computes the scores of additive attention (Bahdanau et al. 2015, appendix A.1.2): y(i, j) = sum over the columns c
/// of v_c tanh(q_ic + k_jc), for each query i and each key j of a sequence.
///
/// Shapes: query [B, T, D], key [B, S, D], scorer (v) [D] -> y [B, T, S].
/// Saved for the backward pass: nothing; the tangents t = tanh(q + k) are computed again. Backward: dq += sum over keys
/// of dy v (1 - t^2), dk += the same sum over queries, dv += sum over queries and keys of dy t.
template <class T>
Variable<T> additive_scores(Graph<T>& graph, const Variable<T>& query, const Variable<T>& key,
                            const Variable<T>& scorer);

/// The sizes that the kernels of additive_scores() need: B sequences with T queries and S keys each, of D columns.
struct ScoreSizes {
  std::int64_t sequences, queries, keys, width;
};

/// Computes the scores y [B, T, S] (see additive_scores() for the formula).
template <class T>
void additive_scores_forward(CpuContext& device, Tensor<T> query, Tensor<T> key, Tensor<T> scorer, Tensor<T> y);
template <class T>
void additive_scores_forward(CudaContext& device, Tensor<T> query, Tensor<T> key, Tensor<T> scorer, Tensor<T> y);
/// Computes the backward pass of additive_scores(): adds to dquery, dkey and dscorer; an empty gradient tensor is
/// skipped.
template <class T>
void additive_scores_backward(CpuContext& device, Tensor<T> query, Tensor<T> key, Tensor<T> scorer, Tensor<T> dy,
                              Tensor<T> dquery, Tensor<T> dkey, Tensor<T> dscorer);
template <class T>
void additive_scores_backward(CudaContext& device, Tensor<T> query, Tensor<T> key, Tensor<T> scorer, Tensor<T> dy,
                              Tensor<T> dquery, Tensor<T> dkey, Tensor<T> dscorer);

}  // namespace heed
