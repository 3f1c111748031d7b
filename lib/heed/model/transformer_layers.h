#pragma once

#include <string>

#include "heed/model/decoder_cache.h"
#include "heed/model/transformer_config.h"
#include "heed/nn/feed_forward.h"
#include "heed/nn/multi_head_attention.h"
#include "heed/nn/norm_chain.h"

namespace heed {

/// One encoder layer: self-attention and feed-forward (Vaswani et al. 2017, section 3.1). The layer registers its layer
/// normalisations in `norms`, the NormChain of the whole encoder, which also adds the residual connections.
class EncoderLayer {
 public:
  EncoderLayer(ParameterLayout& layout, NormChain& norms, const TransformerConfig& config, int index);

  /// Runs the layer on `stream`, the residual stream [S, D] of packed sentences with the offsets `source`, and leaves
  /// the result in `stream`. `trace`, if not null, receives the attention weights.
  template <class T>
  void forward(Graph<T>& graph, const NormChain& norms, ResidualStream<T>& stream, PackedOffsets source,
               Trace* trace) const;

 private:
  int index_;
  MultiHeadAttention self_attention_;
  FeedForward feed_forward_;
};

/// One decoder layer: causal self-attention, cross-attention over the encoder's output, and feed-forward (Vaswani et
/// al. 2017, section 3.1). `norms` is the NormChain of the whole decoder.
class DecoderLayer {
 public:
  DecoderLayer(ParameterLayout& layout, NormChain& norms, const TransformerConfig& config, int index);

  /// Runs the layer on all target positions at once (teacher forcing). `stream` is the residual stream [N, D] with the
  /// offsets `target`; `memory` is the encoder's output [S, D] with the offsets `source`.
  template <class T>
  void forward(Graph<T>& graph, const NormChain& norms, ResidualStream<T>& stream, const Variable<T>& memory,
               PackedOffsets target, PackedOffsets source, Trace* trace) const;

  /// Computes this layer's cross-attention keys and values from `memory`, the encoder's output [S, D], and stores them
  /// in the cache.
  template <class T>
  void start(Graph<T>& graph, const Variable<T>& memory, DecoderCache<T>& cache) const;

  /// Runs the layer on one new position of each row (hypothesis) of the cache: `stream` is [R, D]. Stores the
  /// position's self-attention keys and values in the cache.
  template <class T>
  void step(Graph<T>& graph, const NormChain& norms, ResidualStream<T>& stream, DecoderCache<T>& cache) const;

 private:
  int index_;
  MultiHeadAttention self_attention_, cross_attention_;
  FeedForward feed_forward_;
};

}  // namespace heed
