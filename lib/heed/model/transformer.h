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

/// The encoder-decoder Transformer (Vaswani et al. 2017). The model holds the names and shapes of parameters; the Graph
/// holds their values. One model object can therefore serve any number of threads, in training, scoring and
/// step-by-step decoding.
///
/// Shapes: S source tokens and N target tokens of a packed batch, D model width, V target vocabulary, R decoder rows
/// (hypotheses).
template <class T>
class Transformer {
 public:
  /// Defines the names and shapes of all parameters of a model with this config. Throws UsageError if fields of the
  /// config contradict each other.
  explicit Transformer(const TransformerConfig& config);
  Transformer(const Transformer&) = delete;
  Transformer& operator=(const Transformer&) = delete;

  const TransformerConfig& config() const { return config_; }
  const ParameterLayout& layout() const { return layout_; }

  /// Runs the encoder on packed source sentences. Returns the encoder's output [S, D], for S source tokens and model
  /// width D. `trace`, if not null, receives the attention weights.
  Variable<T> encode(Graph<T>& graph, const PackedIds& source, Trace* trace = nullptr) const;
  /// Runs the decoder on all positions of given target inputs at once (teacher forcing). `memory` is the encoder's
  /// output [S, D] for S source tokens; `source` gives the offsets of the sentences in `memory`. Returns the decoder's
  /// output [N, D] for N target tokens, the input of the output layer.
  Variable<T> decode(Graph<T>& graph, const Variable<T>& memory, PackedOffsets source, const PackedIds& target_in,
                     Trace* trace = nullptr) const;
  /// Returns the training loss of a batch, a scalar: the cross-entropy with label smoothing, multiplied by
  /// options.scale. `sums` receives the loss, the negative log-likelihood and the number of correct predictions, as
  /// sums over target tokens without options.scale.
  Variable<T> loss(Graph<T>& graph, const Batch& batch, const CrossEntropyOptions& options,
                   CrossEntropySums* sums) const;

  /// Creates an empty key/value cache for step-by-step decoding with this model.
  DecoderCache<T> make_cache(Precision precision = Precision::float32) const {
    return {config_.dec_depth, config_.dim_emb, config_.heads, precision};
  }
  /// Prepares the cache for decoding a batch, with one row (hypothesis) for each sentence. `memory` is the encoder's
  /// output [S, D], with the sentence offsets `source`; the cross-attention keys and values of each layer are computed
  /// from `memory` and stored in the cache.
  void start(Graph<T>& graph, const Variable<T>& memory, PackedOffsets source, DecoderCache<T>& cache) const;
  /// Decodes one step: reads one more input token for each of the R rows (hypotheses) of the cache. `tokens` is [R].
  /// Returns the decoder's output [R, D], for model width D.
  Variable<T> step(Graph<T>& graph, std::span<const std::int32_t> tokens, DecoderCache<T>& cache) const;
  /// Decodes one step that reads a chain of counts[r] input tokens for each row (hypothesis) r of the cache: the first
  /// counts[0] of the N elements of `tokens` for row 0, the next counts[1] for row 1, and so on. The cache then has a
  /// row for each token (see DecoderCache::begin_chains). Returns the decoder's output [N, D], for model width D: row i
  /// has the bits that step() would return for token i after it had read the tokens before it, one in each step.
  Variable<T> step_chains(Graph<T>& graph, std::span<const std::int32_t> tokens, std::span<const std::int32_t> counts,
                          DecoderCache<T>& cache) const;

  /// Returns the weight W [V, D] of the output layer, for a target vocabulary of V pieces and model width D: logits =
  /// hidden W^T + b.
  Variable<T> output_weight(Graph<T>& graph) const { return graph.parameter(output_weight_); }
  /// Returns the bias b [V] of the output layer, for a target vocabulary of V pieces; the variable is absent if the
  /// config has no output bias.
  Variable<T> output_bias(Graph<T>& graph) const {
    return output_bias_ ? graph.parameter(output_bias_) : Variable<T>();
  }

 private:
  std::span<const std::int32_t> positions(Graph<T>& graph, PackedOffsets packed) const;
  Variable<T> run_step(Graph<T>& graph, std::span<const std::int32_t> tokens, DecoderCache<T>& cache) const;

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
