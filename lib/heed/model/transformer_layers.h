#pragma once

#include <span>
#include <string>
#include <variant>
#include <vector>

#include "heed/model/decoder_cache.h"
#include "heed/model/transformer_config.h"
#include "heed/nn/average_attention.h"
#include "heed/nn/feed_forward.h"
#include "heed/nn/multi_head_attention.h"
#include "heed/nn/norm_chain.h"
#include "heed/nn/simple_recurrent_unit.h"

namespace heed {

/// One encoder layer: self-attention and feed-forward (Vaswani et al. 2017, section 3.1). The constructor adds the
/// layer normalisations of the layer to `norms`, the NormChain of the whole encoder. The NormChain also adds the
/// residual connections.
class EncoderLayer {
 public:
  EncoderLayer(ParameterLayout& layout, NormChain& norms, const TransformerConfig& config, int index);
  /// Creates a layer that has the parameters of the layer `owner`.
  EncoderLayer(const EncoderLayer& owner, NormChain& norms, const TransformerConfig& config, int index);

  /// Runs the layer on `stream`, the residual stream [S, D] of S source tokens and D columns, and leaves the result in
  /// `stream`. `positions` is what the self-attention layers share, and `source` gives the offsets of the sentences in
  /// the stream. `trace`, if not null, receives the attention weights.
  template <class T>
  void forward(Graph<T>& graph, const NormChain& norms, ResidualStream<T>& stream, const StackPositions<T>& positions,
               PackedOffsets source, Trace<T>* trace) const;
  /// Appends the matrix products of the layer to `products`, in the order of the forward pass.
  void add_products(std::vector<Product>& products) const;
  /// Appends the tables by which this layer alone encodes positions to `tables`.
  template <class T>
  void add_tables(Graph<T>& graph, std::vector<PositionTable>& tables) const {
    self_attention_.add_tables(graph, PositionTable::Stack::encoder, index_ + 1, false, tables);
  }

 private:
  int index_;
  double left_out_;  // the probability that a sequence leaves a sublayer out
  MultiHeadAttention self_attention_;
  FeedForward feed_forward_;
};

/// The encoder's output, as the decoder's cross-attention reads it. Shapes: S source tokens, D columns.
template <class T>
struct EncoderOutput {
  Variable<T> last;      ///< [S, D]: the output of the encoder
  PackedOffsets tokens;  ///< the S tokens of each source, in memory that outlives the output
  /// The output [S, D] of each encoder layer, in memory of the arena; empty if the decoder reads the last layer alone.
  /// The output of a layer is what the next layer reads, and of the last layer the output of the encoder. With
  /// pre-norm, it is therefore normalised: by the first normalisation of the next layer, or by the one at the end.
  std::span<const Variable<T>> layers = {};
  /// [S], where the model counts words: the row of `last` for word number w of a source is words[begin + w], where
  /// `begin` is the source's first token. Behind the last word come rows of `</s>`.
  std::span<const std::int32_t> words = {};

  /// Returns the row of a word of a source, or of `</s>` behind its last word.
  std::int32_t row_of_word(int source, std::int32_t word) const {
    return words[static_cast<std::size_t>(tokens.begin(source) + std::min(word, tokens.length(source) - 1))];
  }
};

/// The sequences of a decoder that computes all positions at once. If a source has several targets, the targets are
/// neighbouring sequences in `target`, and together they are one sequence in `queries`.
struct DecoderOffsets {
  PackedOffsets target;   ///< the sequences of target tokens, within which self-attention works
  PackedOffsets queries;  ///< the target tokens of each source: a sequence for each sequence of `source`
  PackedOffsets source;   ///< the sequences of source tokens
};

/// The sublayer of a decoder layer that reads the earlier target tokens, an alternative for each DecoderAutoreg.
using AutoregressiveSublayer = std::variant<MultiHeadAttention, AverageAttention, SimpleRecurrentUnit>;

/// One decoder layer: self-attention, which is causal unless the decoder predicts all at once, or what takes its place
/// (DecoderAutoreg), cross-attention over the encoder's output, and feed-forward (Vaswani et al. 2017, section 3.1).
/// The constructor adds the layer normalisations of the layer to `norms`, the NormChain of the whole decoder.
class DecoderLayer {
 public:
  DecoderLayer(ParameterLayout& layout, NormChain& norms, const TransformerConfig& config, int index);
  /// Creates a layer that has the parameters of the layer `owner`.
  DecoderLayer(const DecoderLayer& owner, NormChain& norms, const TransformerConfig& config, int index);

  /// Computes this layer's cross-attention keys and values [S, 2D] from the output of the encoder.
  template <class T>
  Variable<T> project_memory(Graph<T>& graph, const EncoderOutput<T>& encoded) const;

  /// Runs the layer on all target positions at once. `stream` is the residual stream [N, D] of N target tokens;
  /// `memory` is what project_memory() returned.
  template <class T>
  void forward(Graph<T>& graph, const NormChain& norms, ResidualStream<T>& stream, const StackPositions<T>& positions,
               const Variable<T>& memory, const DecoderOffsets& offsets, Trace<T>* trace) const;

  /// Runs the layer on one new position of each of the R rows (hypotheses) of the cache: `stream` is the residual
  /// stream [R, D]. Stores the self-attention keys and values, or the states, of the new positions in the
  /// cache.
  template <class T>
  void step(Graph<T>& graph, const NormChain& norms, ResidualStream<T>& stream, const StackPositions<T>& positions,
            DecoderCache<T>& cache) const;
  /// Appends the matrix products of the layer to `products`, in the order of the forward pass.
  void add_products(std::vector<Product>& products) const;
  /// Appends the tables by which this layer alone encodes positions to `tables`.
  template <class T>
  void add_tables(Graph<T>& graph, std::vector<PositionTable>& tables) const {
    if (const auto* attention = std::get_if<MultiHeadAttention>(&autoregression_))
      attention->add_tables(graph, PositionTable::Stack::decoder, index_ + 1, causal_, tables);
  }

 private:
  /// Returns what the cross-attention of this layer reads, [S, D] for S source tokens and D columns.
  template <class T>
  Variable<T> memory_of(Graph<T>& graph, const EncoderOutput<T>& encoded) const;
  /// Computes the first sublayer for the last position of each of the R rows of the cache. Shapes: x [R, D] -> [R, D].
  template <class T>
  Variable<T> step_autoregression(Graph<T>& graph, const Variable<T>& x, const StackPositions<T>& positions,
                                  DecoderCache<T>& cache) const;

  int index_;
  double left_out_;  // the probability that a sequence leaves a sublayer out
  bool causal_;
  CrossAttention source_;
  ParameterId mix_;  // [encoder layers]: the logits of the weights of CrossAttention::mix
  AutoregressiveSublayer autoregression_;
  MultiHeadAttention cross_attention_;
  FeedForward feed_forward_;
};

}  // namespace heed
