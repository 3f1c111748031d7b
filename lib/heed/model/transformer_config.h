#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "heed/model/config_fields.h"
#include "heed/nn/feed_forward.h"
#include "heed/nn/norm.h"
#include "heed/nn/position_encoding.h"
#include "heed/ops/linear.h"

namespace heed {

/// The sizes of a Transformer that have a name. kSizes in transformer_config.cpp lists them.
enum class TransformerSize { tiny, mini, small, base, big };

/// Where normalisation stands in the model: `post` after each residual sum (Vaswani et al. 2017), `pre` before
/// each sublayer (Xiong et al. 2020).
enum class NormPlacement { post, pre };
/// What a decoder layer's cross-attention reads. `last`: the output of the last encoder layer (Vaswani et al. 2017).
/// `layerwise`: decoder layer i reads the output of encoder layer i (He et al. 2018). `mix`: each decoder layer reads a
/// sum of the outputs of all encoder layers, with learned weights that are a softmax (Bapna et al. 2018).
enum class CrossAttention { last, layerwise, mix };
/// How a decoder layer reads the target tokens. `self_attention`: a position reads the earlier positions by causal
/// self-attention (Vaswani et al. 2017). `average`: by an average attention network (Zhang et al. 2018). `rnn`: by a
/// simpler simple recurrent unit, SSRU (Kim et al. 2019). `none`: the decoder is not autoregressive; self-attention
/// reads all positions, and the decoder predicts all masked tokens at once (Ghazvininejad et al. 2019).
enum class DecoderAutoreg { self_attention, average, rnn, none };

template <>
struct EnumNames<CrossAttention> {
  static constexpr std::pair<CrossAttention, std::string_view> values[] = {
      {CrossAttention::last, "last"}, {CrossAttention::layerwise, "layerwise"}, {CrossAttention::mix, "mix"}};
};
template <>
struct EnumNames<DecoderAutoreg> {
  static constexpr std::pair<DecoderAutoreg, std::string_view> values[] = {
      {DecoderAutoreg::self_attention, "self-attention"},
      {DecoderAutoreg::average, "average"},
      {DecoderAutoreg::rnn, "rnn"},
      {DecoderAutoreg::none, "none"}};
};
template <>
struct EnumNames<NormPlacement> {
  static constexpr std::pair<NormPlacement, std::string_view> values[] = {{NormPlacement::post, "post"},
                                                                          {NormPlacement::pre, "pre"}};
};
template <>
struct EnumNames<Normalization> {
  static constexpr std::pair<Normalization, std::string_view> values[] = {
      {Normalization::layer, "layer"}, {Normalization::rms, "rms"}, {Normalization::batch, "batch"}};
};
template <>
struct EnumNames<PositionEncoding> {
  static constexpr std::pair<PositionEncoding, std::string_view> values[] = {
      {PositionEncoding::interleaved, "sinusoidal"}, {PositionEncoding::concatenated, "concatenated"},
      {PositionEncoding::learned, "learned"},        {PositionEncoding::none, "none"},
      {PositionEncoding::relative, "relative"},      {PositionEncoding::alibi, "alibi"},
      {PositionEncoding::rotary, "rotary"},          {PositionEncoding::t5, "t5"}};
};
template <>
struct EnumNames<FeedForwardActivation> {
  static constexpr std::pair<FeedForwardActivation, std::string_view> values[] = {
      {FeedForwardActivation::relu, "relu"},     {FeedForwardActivation::gelu, "gelu"},
      {FeedForwardActivation::swish, "swish"},   {FeedForwardActivation::none, "none"},
      {FeedForwardActivation::swiglu, "swiglu"}, {FeedForwardActivation::geglu, "geglu"}};
};

/// The complete definition of an encoder-decoder Transformer (Vaswani et al. 2017), without the values of the
/// parameters. A checkpoint stores these fields as attributes of the HDF5 group /config.
struct TransformerConfig : VocabularySizes {
  static constexpr std::string_view kArchitecture = "transformer", kName = "Transformer";

  std::int64_t dim_emb = 0;
  int enc_depth = 0, dec_depth = 0, heads = 0;
  std::int64_t dim_ffn = 0;
  NormPlacement norm = NormPlacement::post;
  Normalization normalization = Normalization::layer;
  FeedForwardActivation ffn_activation = FeedForwardActivation::relu;
  PositionEncoding positions = PositionEncoding::interleaved;
  /// Number of learned positions, and thus the largest length of a sentence in tokens. Sinusoidal positions have no
  /// limit.
  int max_positions = 1024;
  /// Whether embeddings get the sinusoid of a number of words. For a source token, the number counts the words that
  /// ended before the token. For a target token that the decoder reads, the number also counts a word that ends with
  /// this token. If both texts have the same words, as a sentence and its constituency tree have, the next target word
  /// and its source word thus have the same number. `positions` must be an encoding within self-attention, or
  /// PositionEncoding::none.
  bool word_positions = false;
  /// Whether the decoder also reads, with each token, the encoder's output for the source word that is the next to be
  /// written (deterministic attention, Ma et al. 2017): word number w, if w target words have ended so far.
  bool next_word = false;
  /// The pieces of each vocabulary that end a word, as PieceSet::text() writes them, where words are counted.
  std::string source_word_ends, target_word_ends;
  TiedEmbeddings tied_embeddings = TiedEmbeddings::none;
  bool output_bias = false;
  AttentionScoring attention = AttentionScoring::dot;  ///< how attention scores queries and keys
  double dropout = 0.1;          ///< dropout probability on embeddings and on the output of every sublayer
  double attention_dropout = 0;  ///< dropout probability on attention weights
  double ffn_dropout = 0;        ///< dropout probability after the activation of the feed-forward layer
  /// The probability that a sequence leaves a sublayer of a stack's last layer out; it rises linearly from 0 at the
  /// first layer (stochastic depth, Huang et al. 2016).
  double stochastic_depth = 0;

  CrossAttention cross_attention = CrossAttention::last;
  /// For each layer of the encoder, and of the decoder, the number of the layer whose parameters the layer has, counted
  /// from 1. Empty: each layer has parameters of its own.
  std::vector<int> tied_layers;
  DecoderAutoreg decoder_autoreg = DecoderAutoreg::self_attention;
  std::int64_t dim_aan = 0;  ///< width of the feed-forward network in DecoderAutoreg::average; 0: none
  /// DecoderAutoreg::none: the largest difference of the numbers of target and source tokens that is predicted.
  int length_range = 100;
  /// DecoderAutoreg::none: the number of positions of every target, which ends at its first `</s>`. 0: the number is
  /// predicted.
  int fixed_length = 0;

  double norm_epsilon = 1e-5;

  /// Creates a config with the sizes of `size`.
  explicit TransformerConfig(TransformerSize size = TransformerSize::base);

  /// Lists the fields that the user can choose with options of `train`.
  template <class Visitor>
  void option_fields(Visitor& visit) {
    visit(dim_emb, kDimEmbField);
    visit(enc_depth, kEncDepthField);
    visit(dec_depth, kDecDepthField);
    visit(heads, kHeadsField);
    visit(dim_ffn, kDimFfnField);
    visit(norm, {.name = "transformer-norm", .help = "normalisation after (post) or before (pre) each sublayer"});
    visit(normalization,
          {.name = "transformer-normalization",
           .help = "layer normalisation; RMS normalisation, without mean and bias; or batch normalisation",
           .later = true});
    visit(ffn_activation, {.name = "transformer-ffn-activation",
                           .help = "activation function, or gated linear unit, of the feed-forward layer"});
    visit(positions, {.name = "transformer-positions", .help = "position encoding"});
    visit(word_positions, {.name = "transformer-word-positions",
                           .help = "also tell encoder and decoder how many words there are before each token",
                           .later = true});
    visit(next_word, {.name = "transformer-next-word",
                      .help = "let the decoder read, with each token, the source word that is the next to be written",
                      .later = true});
    visit(max_positions, {.name = "max-positions",
                          .help = "number of learned positions; no sentence may be longer",
                          .value = "N",
                          .min = 1,
                          .max = 1 << 20});
    visit(tied_embeddings,
          {.name = "tied-embeddings",
           .help = "share one weight: none; decoder's embedding and output layer; these and the encoder's embedding",
           .implicit = "decoder"});
    visit(attention, {.name = "attention",
                      .help = "score queries and keys by dot products, or additively, with a small network (slower)",
                      .later = true});
    visit(output_bias, {.name = "output-bias", .help = "give the output layer a bias"});
    visit(dropout, kDropoutField);
    visit(attention_dropout, kAttentionDropoutField);
    visit(ffn_dropout, kFfnDropoutField);
    visit(stochastic_depth,
          dropping_field("stochastic-depth", "probability that a sublayer of the last layer is left out for a sentence",
                         true));
    visit(cross_attention,
          {.name = "cross-attention",
           .help = "encoder layers that the decoder reads: the last; each layer its counterpart; a learned mix",
           .later = true});
    visit(tied_layers, {.name = "tied-layers",
                        .help = "for each layer of encoder and decoder, the number of the layer with its parameters",
                        .value = "N",
                        .min = 1,
                        .max = 1024,
                        .later = true});
    visit(decoder_autoreg, {.name = "transformer-decoder-autoreg",
                            .help = "how a decoder layer reads earlier target tokens; none: it predicts all at once",
                            .later = true});
    visit(dim_aan, {.name = "transformer-dim-aan",
                    .help = "width of the feed-forward layer in average attention; 0: none",
                    .value = "N",
                    .min = 0,
                    .max = kMostWidth,
                    .later = true});
    visit(length_range, {.name = "length-range",
                         .help = "largest difference between the lengths of target and source that a decoder of all "
                                 "positions at once predicts",
                         .value = "N",
                         .min = 1,
                         .max = 100000,
                         .later = true});
    visit(fixed_length, {.name = "fixed-length",
                         .help = "give every target N positions, and cut it at its </s>; 0: predict its length",
                         .value = "N",
                         .min = 0,
                         .max = 1 << 20,
                         .later = true});
  }

  template <class Visitor>
  void fields(Visitor& visit) {
    visit.section("Model");
    VocabularySizes::fields(visit);
    option_fields(visit);
    visit(source_word_ends, {.name = "source-word-ends", .help = "source pieces that end a word", .later = true});
    visit(target_word_ends, {.name = "target-word-ends", .help = "target pieces that end a word", .later = true});
    visit(norm_epsilon, {.name = "norm-epsilon",
                         .help = "added to the variance (or mean square) in normalisation",
                         .min = 0,
                         .max = 1});
  }

  /// Returns whether the model predicts all positions of a target at once.
  bool is_parallel() const { return decoder_autoreg == DecoderAutoreg::none; }
  /// Returns whether the model counts words.
  bool counts_words() const { return word_positions || next_word; }
  /// Returns whether the decoder has self-attention.
  bool decoder_attends() const { return decoder_autoreg == DecoderAutoreg::self_attention || is_parallel(); }
  /// Returns the greatest number of tokens in a sequence that the model accepts, which is the number of learned
  /// positions or of fixed ones; nothing when it accepts any number.
  std::optional<int> longest_sequence() const;

  /// Returns the probability that a sequence leaves a sublayer of layer `index`, from 0, of `depth` layers out.
  double left_out(int index, int depth) const {
    return depth > 1 ? stochastic_depth * index / (depth - 1) : stochastic_depth;
  }
  /// Returns the index, from 0, of the layer whose parameters the layer `index` of the encoder or decoder has.
  int parameters_of_layer(int index) const {
    return tied_layers.empty() ? index : tied_layers[static_cast<std::size_t>(index)] - 1;
  }

  /// Describes the sizes: "3 + 3 layers, width 128, 4 heads, feed-forward 256".
  std::string describe() const;
  /// Returns what the user must also give so that an option has an effect, such as "--transformer-positions learned"
  /// for "max-positions"; an empty string if the option has an effect.
  std::string unmet_need(std::string_view option) const;
  /// Throws UsageError, with the names of the options, if fields of the config contradict each other: the number of
  /// heads does not divide the width, sinusoidal positions have an odd width, `--tied-embeddings all` has vocabularies
  /// of different sizes, `--cross-attention layerwise` has different numbers of encoder and decoder layers, or
  /// `--tied-layers` does not fit the layers.
  void validate() const;
};

}  // namespace heed
