#pragma once

#include <cstdint>
#include <span>

#include "heed/autograd/graph.h"
#include "heed/tensor/packed.h"

namespace heed {

/// A link of an alignment: query and key, counted from 0 in their sequence, belong together. `share` is the part of the
/// query's attention that the key should get; the shares of all links of a query sum to 1.
struct AttentionLink {
  std::int32_t sequence = 0, query = 0, key = 0;
  float share = 1;
};

/// The loss of an alignment, without a factor, and the number of queries that have links.
struct AlignmentSums {
  double loss = 0;  ///< in nats
  double queries = 0;
};

/// Computes the loss of guided alignment (Chen et al. 2016, "Guided alignment training for topic-aware neural machine
/// translation", section 3): scale times the cross-entropy of the attention weights with a given alignment, y = -scale
/// sum over links of share ln(p + e), where p is the mean over the heads of the weight that the link's query gives to
/// the link's key. e = 1e-6 keeps the loss of a weight of 0 finite.
///
/// Shapes: weights as attention_weights() creates them -> scalar. `links` must be in ascending order of sequences, and
/// must stay in memory until the backward pass has ended. Saved for the backward pass: nothing but the weights.
/// Backward: dP_h(query, key) += -dy scale share / (H (p + e)) for each of the H heads. Throws Error where a link is
/// outside its sequence. `sums`, where not null, receives the sums of the batch.
template <class T>
Variable<T> alignment_loss(Graph<T>& graph, const Variable<T>& weights, int heads, PackedOffsets queries,
                           PackedOffsets keys, std::span<const AttentionLink> links, double scale,
                           AlignmentSums* sums = nullptr);

/// Computes loss[0], the value of alignment_loss(), in the memory of the device, and the sums, where `sums` is not
/// null, in that of the host (see LossResult).
template <class T>
void alignment_loss_forward(CpuContext& device, Tensor<T> weights, int heads, PackedOffsets queries, PackedOffsets keys,
                            std::span<const AttentionLink> links, double scale, T* loss, AlignmentSums* sums);
template <class T>
void alignment_loss_forward(CudaContext& device, Tensor<T> weights, int heads, PackedOffsets queries,
                            PackedOffsets keys, std::span<const AttentionLink> links, double scale, T* loss,
                            AlignmentSums* sums);
/// Adds the gradient of dloss[0] times the loss to `gradient`, which has the shape of `weights`.
template <class T>
void alignment_loss_backward(CpuContext& device, Tensor<T> weights, int heads, PackedOffsets queries,
                             PackedOffsets keys, std::span<const AttentionLink> links, double scale, const T* dloss,
                             Tensor<T> gradient);
template <class T>
void alignment_loss_backward(CudaContext& device, Tensor<T> weights, int heads, PackedOffsets queries,
                             PackedOffsets keys, std::span<const AttentionLink> links, double scale, const T* dloss,
                             Tensor<T> gradient);

}  // namespace heed
