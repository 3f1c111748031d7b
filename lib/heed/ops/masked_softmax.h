// The softmax of padded attention scores with every kind of mask: valid lengths, key padding, hidden positions,
// additive. The programs do not call it, since their batches are packed and have no padding: attention
// (ops/attention.h) takes the offsets of the sequences. It is for users of the library whose batches are padded.
#pragma once

#include <cstdint>
#include <span>

#include "heed/autograd/graph.h"

namespace heed {

/// What hides keys from queries in scores [B, T, S]; each part may be absent, together they hide the union.
template <class T>
struct SoftmaxMask {
  /// [B]: sequence b has that many keys, for all its queries; or [B T]: one number a query, each in 0 .. S.
  std::span<const std::int32_t> valid_lengths = {};
  /// [B, S]: not 0 hides the key.
  Tensor<const std::uint8_t> key_padding = {};
  /// [T, S] or [B, T, S]: not 0 hides the key from the query.
  Tensor<const std::uint8_t> hidden = {};
  /// [T, S] or [B, T, S]: added to the scores; minus infinity hides. A constant: it gets no gradient.
  Tensor<const T> additive = {};
};

/// softmax(x + additive) over the last axis, over the keys that are not hidden; a hidden key gets 0, and a query all of
/// whose keys are hidden gets zeros throughout (so that it takes nothing from anywhere and gives no gradient).
///
/// Shapes: x [B, T, S] -> y the same. Throws Error where a mask's shape or a valid length does not fit.
/// Kept for the way back: y; the masks are not needed any more. Backward: dx += y (dy - sum(y dy)).
template <class T>
Variable<T> masked_softmax(Graph<T>& graph, const Variable<T>& x, const SoftmaxMask<T>& mask);

/// The shapes are known to fit.
template <class T>
void masked_softmax_forward(CpuContext& device, Tensor<T> x, const SoftmaxMask<T>& mask, Tensor<T> y);

}  // namespace heed
