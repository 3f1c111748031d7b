#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "heed/model/batch.h"
#include "heed/model/decoder_cache.h"
#include "heed/model/transformer_config.h"
#include "heed/model/transformer_layers.h"
#include "heed/nn/token_embedding.h"
#include "heed/ops/cross_entropy.h"

namespace heed {

/// The encoder-decoder Transformer (Vaswani et al. 2017). It holds names and shapes; values come with the Graph, so
/// one model serves any number of threads, for training, scoring and step-by-step decoding.
///
/// Shapes: S source tokens and N target tokens of a packed batch, D model width, V target vocabulary, R decoder rows.
template <class T>
class Transformer {
 public:
  /// Throws UsageError where the config does not fit together.
  explicit Transformer(const TransformerConfig& config);
  Transformer(const Transformer&) = delete;
  Transformer& operator=(const Transformer&) = delete;

  const TransformerConfig& config() const { return config_; }
  const ParameterLayout& layout() const { return layout_; }

  /// Encoder output [S, D].
  Variable<T> encode(Graph<T>& graph, const PackedIds& source, Trace* trace = nullptr) const;
  /// Decoder output [N, D] for given target inputs.
  Variable<T> decode(Graph<T>& graph, const Variable<T>& memory, PackedOffsets source, const PackedIds& target_in,
                     Trace* trace = nullptr) const;
  /// The scaled, label-smoothed cross-entropy of a batch; `sums` gets its unscaled parts.
  Variable<T> loss(Graph<T>& graph, const Batch& batch, const CrossEntropyOptions& options,
                   CrossEntropySums* sums) const;

  /// A cache for step-by-step decoding.
  DecoderCache<T> make_cache(Precision precision = Precision::float32) const {
    return {config_.dec_depth, config_.dim_emb, config_.heads, precision};
  }
  /// Starts decoding a batch: one row for each sentence of the encoder's output [S, D].
  void start(Graph<T>& graph, const Variable<T>& memory, PackedOffsets source, DecoderCache<T>& cache) const;
  /// Feeds one token to each row: tokens [R] -> decoder output [R, D].
  Variable<T> step(Graph<T>& graph, std::span<const std::int32_t> tokens, DecoderCache<T>& cache) const;

  /// The output layer: weight [V, D] and bias [V] (absent without one). logits = hidden W^T + b.
  Variable<T> output_weight(Graph<T>& graph) const { return graph.parameter(output_weight_); }
  Variable<T> output_bias(Graph<T>& graph) const {
    return output_bias_ ? graph.parameter(output_bias_) : Variable<T>();
  }

 private:
  std::span<const std::int32_t> positions(Graph<T>& graph, PackedOffsets packed) const;

  TransformerConfig config_;
  ParameterLayout layout_;
  std::unique_ptr<TokenEmbedding<T>> source_embedding_, target_embedding_;
  NormChain encoder_norms_, decoder_norms_;
  std::vector<EncoderLayer> encoder_layers_;
  std::vector<DecoderLayer> decoder_layers_;
  ParameterId output_weight_, output_bias_;
};

extern template class Transformer<float>;
extern template class Transformer<double>;

}  // namespace heed
