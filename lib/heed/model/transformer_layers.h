#pragma once

#include <string>

#include "heed/model/decoder_cache.h"
#include "heed/model/transformer_config.h"
#include "heed/nn/feed_forward.h"
#include "heed/nn/multi_head_attention.h"
#include "heed/nn/norm_chain.h"

namespace heed {

/// Self-attention and feed-forward (Vaswani et al. 2017, section 3.1). The norms are the stack's.
class EncoderLayer {
 public:
  EncoderLayer(ParameterLayout& layout, NormChain& norms, const TransformerConfig& config, int index);

  template <class T>
  void forward(Graph<T>& graph, const NormChain& norms, ResidualStream<T>& stream, PackedOffsets source,
               Trace* trace) const;

 private:
  int index_;
  MultiHeadAttention self_attention_;
  FeedForward feed_forward_;
};

/// Causal self-attention, attention over the encoder's output, and feed-forward.
class DecoderLayer {
 public:
  DecoderLayer(ParameterLayout& layout, NormChain& norms, const TransformerConfig& config, int index);

  /// All positions at once (teacher forcing).
  template <class T>
  void forward(Graph<T>& graph, const NormChain& norms, ResidualStream<T>& stream, const Variable<T>& memory,
               PackedOffsets target, PackedOffsets source, Trace* trace) const;

  /// Projects the encoder's output [S, D] into the cache.
  template <class T>
  void start(Graph<T>& graph, const Variable<T>& memory, DecoderCache<T>& cache) const;

  /// One position of each of the cache's rows.
  template <class T>
  void step(Graph<T>& graph, const NormChain& norms, ResidualStream<T>& stream, DecoderCache<T>& cache) const;

 private:
  int index_;
  MultiHeadAttention self_attention_, cross_attention_;
  FeedForward feed_forward_;
};

}  // namespace heed
