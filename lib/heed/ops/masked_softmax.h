// The softmax of padded attention scores with every kind of mask: valid lengths, key padding, hidden positions and
// additive masks. This op is for users of the library whose batches are padded. heed's own programs do not call this
// op: their batches are packed and have no padding, and the op attention() (ops/attention.h) takes the offsets of the
// sequences.
#pragma once

#include <cstdint>
#include <span>

#include "heed/autograd/graph.h"

namespace heed {

/// The masks that hide keys from queries in scores [B, T, S]. Each mask may be absent; a key is hidden from a query
/// where any mask hides the key.
template <class T>
struct SoftmaxMask {
  /// [B] or [B T]: the number of valid keys (0 .. S) for all queries of a sequence, or for each query. The keys after
  /// these are hidden.
  std::span<const std::int32_t> valid_lengths = {};
  /// [B, S]: a value that is not 0 hides the key from all queries of the sequence.
  Tensor<const std::uint8_t> key_padding = {};
  /// [T, S] (the same for all sequences) or [B, T, S]: a value that is not 0 hides the key from the query.
  Tensor<const std::uint8_t> hidden = {};
  /// [T, S] (the same for all sequences) or [B, T, S]: numbers that are added to the scores; minus infinity hides the
  /// key. The numbers are constants and get no gradient.
  Tensor<const T> additive = {};
};

/// Computes y = softmax(x + additive mask) over the last axis, restricted to the keys that are not hidden. A hidden key
/// gets the probability 0. A query whose keys are all hidden gets zeros for all keys, so no gradient flows through that
/// query.
///
/// Shapes: x [B, T, S] -> y the same. Throws Error where a mask's shape or a valid length does not fit.
/// Saved for the backward pass: y (but not the masks). Backward: dx += y (dy - sum(y dy)).
template <class T>
Variable<T> masked_softmax(Graph<T>& graph, const Variable<T>& x, const SoftmaxMask<T>& mask);

/// Computes the softmax y of the scores x without the keys that `mask` hides (see masked_softmax()). The caller has
/// checked that the shapes of the masks fit x.
template <class T>
void masked_softmax_forward(CpuContext& device, Tensor<T> x, const SoftmaxMask<T>& mask, Tensor<T> y);
template <class T>
void masked_softmax_forward(CudaContext& device, Tensor<T> x, const SoftmaxMask<T>& mask, Tensor<T> y);

}  // namespace heed
