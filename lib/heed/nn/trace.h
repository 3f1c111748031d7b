#pragma once

#include "heed/tensor/packed.h"

namespace heed {

/// Which attention of an encoder-decoder model: the encoder's self-attention, the decoder's, or the decoder's over the
/// encoder's output.
enum class AttentionKind { encoder, decoder, cross };

/// Receives the attention weights of a forward pass. Models hand them out and know nothing of who looks.
class Trace {
 public:
  virtual ~Trace() = default;

  /// `weights`: for each sequence b and head h a row-major [T_b, S_b] matrix of probabilities, laid end to end (see
  /// ops/attention.h). `layer` counts from 0. The memory ends with the call.
  virtual void attention(AttentionKind kind, int layer, int heads, PackedOffsets queries, PackedOffsets keys,
                         const float* weights) = 0;
};

/// Where in the model an attention stands, for the trace.
struct TracePoint {
  Trace* trace = nullptr;
  AttentionKind kind = AttentionKind::encoder;
  int layer = 0;
};

}  // namespace heed
