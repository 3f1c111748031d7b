#pragma once

#include "heed/tensor/packed.h"

namespace heed {

/// The kinds of attention in an encoder-decoder model: the encoder's self-attention, the decoder's self-attention, and
/// the decoder's cross-attention over the encoder's output.
enum class AttentionKind { encoder, decoder, cross };

/// The interface that receives the attention weights of a forward pass. A model calls the trace that the caller passed
/// and does not know what the trace does with the weights (for example draw a picture).
class Trace {
 public:
  virtual ~Trace() = default;

  /// Receives the attention weights of one layer (`layer` counts from 0). `weights` holds, for each sequence b and each
  /// head h, a row-major matrix [T_b, S_b] of probabilities; the matrices follow each other without gaps (see
  /// ops/attention.h). The memory of `weights` is valid during the call only.
  virtual void attention(AttentionKind kind, int layer, int heads, PackedOffsets queries, PackedOffsets keys,
                         const float* weights) = 0;
};

/// The trace that receives the attention weights of an attention layer, and the layer's place in the model, which is
/// reported together with the weights. Without a trace nothing is reported.
struct TracePoint {
  Trace* trace = nullptr;
  AttentionKind kind = AttentionKind::encoder;
  int layer = 0;
};

}  // namespace heed
