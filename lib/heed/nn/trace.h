#pragma once

#include "heed/autograd/graph.h"
#include "heed/tensor/packed.h"

namespace heed {

/// The kinds of attention in an encoder-decoder model: the encoder's self-attention, the decoder's self-attention, and
/// the decoder's cross-attention over the encoder's output.
enum class AttentionKind { encoder, decoder, cross };

/// The interface that receives the attention weights of a forward pass. A model calls the trace that the caller passed
/// and does not know what the trace does with the weights (for example draw a picture, or compute a loss from them).
template <class T>
class Trace {
 public:
  virtual ~Trace() = default;

  /// Tells whether the trace receives the attention weights of this layer (`layer` counts from 0). A model computes the
  /// weights of no other layers.
  virtual bool wants(AttentionKind kind, int layer) const = 0;
  /// Receives the attention weights of one layer. `weights` holds, for each sequence b and each head h, a row-major
  /// matrix [T_b, S_b] of probabilities; the matrices follow each other without gaps, and elements without a meaning
  /// may follow them (see ops/attention.h). In training, ops may compute with `weights`. In inference, the memory of
  /// `weights` is valid during the call only.
  virtual void attention(AttentionKind kind, int layer, int heads, PackedOffsets queries, PackedOffsets keys,
                         const Variable<T>& weights) = 0;
};

/// The trace that receives the attention weights of an attention layer, and the layer's place in the model, which is
/// reported together with the weights. Without a trace nothing is reported.
template <class T>
struct TracePoint {
  Trace<T>* trace = nullptr;
  AttentionKind kind = AttentionKind::encoder;
  int layer = 0;

  /// Tells whether there is a trace that receives the weights of this layer.
  bool wants() const { return trace && trace->wants(kind, layer); }
};

}  // namespace heed
