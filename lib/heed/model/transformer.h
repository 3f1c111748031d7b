#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "heed/model/decoder_cache.h"
#include "heed/model/model.h"
#include "heed/model/transformer_layers.h"
#include "heed/nn/length_predictor.h"
#include "heed/nn/token_embedding.h"
#include "heed/text/strings/piece_set.h"

namespace heed {

/// The encoder-decoder Transformer (Vaswani et al. 2017), which decodes step by step. See also
/// model/parallel_transformer.h.
///
/// Shapes: S source tokens and N target tokens of a packed batch, D model width, V target vocabulary, R decoder rows
/// (hypotheses).
template <class T>
class Transformer : public Model<T> {
 public:
  /// Defines the names and shapes of all parameters of a model with this config. Throws UsageError if fields of the
  /// config contradict each other.
  explicit Transformer(const TransformerConfig& config) : Transformer(config, config, true) {}

  Variable<T> hidden(Graph<T>& graph, const Batch& batch, Trace<T>* trace = nullptr) const override;
  std::unique_ptr<DecoderState<T>> make_state(Device device) const override;
  std::vector<Product> products() const override;
  std::vector<AttentionLayers> attention_layers() const override;
  std::vector<PositionTable> position_tables(Graph<T>& graph, std::int64_t positions) const override;
  std::optional<ResidualNorms> residual_norms() const override;

  /// Runs the encoder on packed source sentences. `trace`, if not null, receives the attention weights.
  EncoderOutput<T> encode(Graph<T>& graph, const PackedIds& source, Trace<T>* trace = nullptr) const;
  /// Runs the decoder on all positions of the given target inputs at once (teacher forcing). `encoded` is the output of
  /// encode(). `target_in` holds the N target tokens, which must stay in memory until the backward pass has ended.
  /// `offsets` gives the sequences of the source tokens and of the target tokens. Returns the decoder's output [N, D],
  /// the input of the output layer.
  Variable<T> decode(Graph<T>& graph, const EncoderOutput<T>& encoded, std::span<const std::int32_t> target_in,
                     const DecoderOffsets& offsets, Trace<T>* trace = nullptr) const;

  /// Computes the keys and values of each decoder layer's cross-attention, [S, 2D] for S source tokens, in memory of
  /// `arena`, which is of the device.
  std::vector<Tensor<T>> project_memory(Graph<T>& graph, const EncoderOutput<T>& encoded, Arena& arena) const;
  /// Runs the decoder like the first decode(), but reads the keys and values `memory`, which project_memory() returned,
  /// instead of the encoder's output. Does not support TransformerConfig::next_word.
  Variable<T> decode(Graph<T>& graph, std::span<const Tensor<T>> memory, std::span<const std::int32_t> target_in,
                     const DecoderOffsets& offsets) const;

  /// Creates an empty cache of keys and values, or of states, for step-by-step decoding with this model on a device.
  DecoderCache<T> make_cache(Device device) const {
    return DecoderCache<T>(device, config_.dec_depth, config_.dim_emb, config_.heads,
                           config_.decoder_autoreg != DecoderAutoreg::self_attention);
  }
  /// Prepares the cache for decoding a batch, with one row (hypothesis) for each sentence. `encoded` is the output of
  /// encode(). Computes the cross-attention keys and values of each decoder layer from `encoded` and stores them in the
  /// cache.
  void start(Graph<T>& graph, const EncoderOutput<T>& encoded, DecoderCache<T>& cache) const;
  /// Decodes one step: reads one more input token for each of the R rows (hypotheses) of the cache. `tokens` is [R].
  /// Returns the decoder's output [R, D], for model width D.
  Variable<T> step(Graph<T>& graph, std::span<const std::int32_t> tokens, DecoderCache<T>& cache) const;
  /// Decodes one step that reads a chain of counts[r] input tokens for each row (hypothesis) r of the cache: the first
  /// counts[0] of the N elements of `tokens` for row 0, the next counts[1] for row 1, and so on. The cache then has a
  /// row for each token (see DecoderCache::begin_chains). Returns the decoder's output [N, D], for model width D: row i
  /// has the bits that step() would return for token i after it had read the tokens before it, one in each step.
  Variable<T> step_chains(Graph<T>& graph, std::span<const std::int32_t> tokens, std::span<const std::int32_t> counts,
                          DecoderCache<T>& cache) const;

 protected:
  /// The input of the encoder: the embedded tokens [S, D] of the sources, and the tokens of each source.
  struct SourceTokens {
    Variable<T> embedded;
    PackedOffsets tokens;
  };

  /// Defines the parameters of a Transformer with the config `config`. `whole` is the config of the complete model,
  /// which may have further parts, such as patch embeddings. `reads_tokens` is false if embed_source() does not look up
  /// ids of a source vocabulary; the model then has no source embedding.
  Transformer(const TransformerConfig& config, const ModelConfig& whole, bool reads_tokens);

  /// Returns what the encoder reads of the sources.
  virtual SourceTokens embed_source(Graph<T>& graph, const PackedIds& source) const;

  using Model<T>::layout_;
  const TransformerConfig config_;
  std::optional<LengthPredictor> lengths_;  // where the model predicts the lengths of targets

 private:
  /// Runs the decoder on all positions at once; `memory(layer)` returns the keys and values of a layer's
  /// cross-attention.
  template <class Memory>
  Variable<T> run_decoder(Graph<T>& graph, std::span<const std::int32_t> target_in, const DecoderOffsets& offsets,
                          const Variable<T>& next_words, Memory memory, Trace<T>* trace) const;
  std::span<const std::int32_t> first_pieces(Graph<T>& graph, const PackedIds& source) const;
  Variable<T> next_words(Graph<T>& graph, const EncoderOutput<T>& encoded, std::span<const std::int32_t> target_in,
                         PackedOffsets target) const;
  template <class Layer>
  void add_layers(std::vector<Layer>& layers, NormChain& norms, int depth);
  std::span<const std::int32_t> positions(Graph<T>& graph, PackedOffsets packed) const;
  std::span<const std::int32_t> source_words(Graph<T>& graph, std::span<const std::int32_t> ids,
                                             PackedOffsets packed) const;
  std::span<const std::int32_t> target_words(Graph<T>& graph, std::span<const std::int32_t> ids,
                                             PackedOffsets packed) const;
  Variable<T> run_step(Graph<T>& graph, std::span<const std::int32_t> tokens, DecoderCache<T>& cache) const;

  std::unique_ptr<TokenEmbedding<T>> source_embedding_, target_embedding_;
  PieceSet source_word_ends_, target_word_ends_;  // where words are counted
  std::optional<Product> next_word_;
  std::optional<SelfAttentionPositions> encoder_positions_, decoder_positions_;
  NormChain encoder_norms_, decoder_norms_;
  std::vector<EncoderLayer> encoder_layers_;
  std::vector<DecoderLayer> decoder_layers_;
};

extern template class Transformer<float>;
extern template class Transformer<double>;

}  // namespace heed
