#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>

#include "heed/config/fields.h"
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
/// Which layers of the model share one weight matrix. `none`: no layers; `decoder`: the target embedding and the output
/// layer; `all`: the source embedding, the target embedding and the output layer, which needs one vocabulary for both
/// languages.
enum class TiedEmbeddings { none, decoder, all };

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
struct EnumNames<TiedEmbeddings> {
  static constexpr std::pair<TiedEmbeddings, std::string_view> values[] = {
      {TiedEmbeddings::none, "none"}, {TiedEmbeddings::decoder, "decoder"}, {TiedEmbeddings::all, "all"}};
};
template <>
struct EnumNames<PositionEncoding> {
  static constexpr std::pair<PositionEncoding, std::string_view> values[] = {
      {PositionEncoding::interleaved, "sinusoidal"},
      {PositionEncoding::concatenated, "concatenated"},
      {PositionEncoding::learned, "learned"}};
};
template <>
struct EnumNames<FeedForwardActivation> {
  static constexpr std::pair<FeedForwardActivation, std::string_view> values[] = {
      {FeedForwardActivation::relu, "relu"},     {FeedForwardActivation::gelu, "gelu"},
      {FeedForwardActivation::swish, "swish"},   {FeedForwardActivation::none, "none"},
      {FeedForwardActivation::swiglu, "swiglu"}, {FeedForwardActivation::geglu, "geglu"}};
};

/// The maximum width of a layer, in columns. Matrix products in int8 are exact up to kInt8MostDepth columns; the
/// static_assert checks that no layer can be wider.
constexpr std::int64_t kMostWidth = 1 << 20;
static_assert(kMostWidth <= kInt8MostDepth);

/// The numbers of pieces (subwords) in the two vocabularies of a model, which every config has.
struct VocabularySizes {
  std::int64_t source_vocabulary = 0, target_vocabulary = 0;

  template <class Visitor>
  void fields(Visitor& visit) {
    visit(source_vocabulary,
          {.name = "source-vocabulary", .help = "number of source pieces", .value = "N", .min = 1, .max = 1e8});
    visit(target_vocabulary,
          {.name = "target-vocabulary", .help = "number of target pieces", .value = "N", .min = 1, .max = 1e8});
  }
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
  TiedEmbeddings tied_embeddings = TiedEmbeddings::none;
  bool output_bias = false;
  double dropout = 0.1;          ///< dropout probability on embeddings and on the output of every sublayer
  double attention_dropout = 0;  ///< dropout probability on attention weights
  double ffn_dropout = 0;        ///< dropout probability after the activation of the feed-forward layer

  double norm_epsilon = 1e-5;

  /// Creates a config with the sizes of `size`.
  explicit TransformerConfig(TransformerSize size = TransformerSize::base);

  /// Lists the fields that the user can choose with options of `train`.
  template <class Visitor>
  void option_fields(Visitor& visit) {
    visit(dim_emb, {.name = "dim-emb",
                    .help = "width of embeddings and layers",
                    .value = "N",
                    .min = 1,
                    .max = kMostWidth,
                    .preset = true});
    visit(enc_depth,
          {.name = "enc-depth", .help = "encoder layers", .value = "N", .min = 1, .max = 1024, .preset = true});
    visit(dec_depth,
          {.name = "dec-depth", .help = "decoder layers", .value = "N", .min = 1, .max = 1024, .preset = true});
    visit(
        heads,
        {.name = "transformer-heads", .help = "attention heads", .value = "N", .min = 1, .max = 1024, .preset = true});
    visit(dim_ffn, {.name = "transformer-dim-ffn",
                    .help = "width of the feed-forward layer",
                    .value = "N",
                    .min = 1,
                    .max = kMostWidth,
                    .preset = true});
    visit(norm, {.name = "transformer-norm", .help = "normalisation after (post) or before (pre) each sublayer"});
    visit(normalization,
          {.name = "transformer-normalization",
           .help = "layer normalisation; RMS normalisation, without mean and bias; or batch normalisation",
           .later = true});
    visit(ffn_activation, {.name = "transformer-ffn-activation",
                           .help = "activation function, or gated linear unit, of the feed-forward layer"});
    visit(positions, {.name = "transformer-positions", .help = "position encoding"});
    visit(max_positions, {.name = "max-positions",
                          .help = "number of learned positions; no sentence may be longer",
                          .value = "N",
                          .min = 1,
                          .max = 1 << 20});
    visit(tied_embeddings,
          {.name = "tied-embeddings",
           .help = "share one weight: none; decoder's embedding and output layer; these and the encoder's embedding",
           .implicit = "decoder"});
    visit(output_bias, {.name = "output-bias", .help = "give the output layer a bias"});
    visit(dropout, {.name = "dropout",
                    .help = "dropout on embeddings and on the output of each sublayer",
                    .value = "P",
                    .min = 0,
                    .max = 0.99});
    visit(attention_dropout,
          {.name = "attention-dropout", .help = "dropout on attention weights", .value = "P", .min = 0, .max = 0.99});
    visit(ffn_dropout,
          {.name = "ffn-dropout", .help = "dropout in the feed-forward layer", .value = "P", .min = 0, .max = 0.99});
  }

  template <class Visitor>
  void fields(Visitor& visit) {
    visit.section("Model");
    VocabularySizes::fields(visit);
    option_fields(visit);
    visit(norm_epsilon, {.name = "norm-epsilon",
                         .help = "added to the variance (or mean square) in normalisation",
                         .min = 0,
                         .max = 1});
  }

  /// Returns the greatest number of tokens in a sequence that the model accepts, which is the number of learned
  /// positions; nothing when it accepts any number.
  std::optional<int> longest_sequence() const {
    return positions == PositionEncoding::learned ? std::optional(max_positions) : std::nullopt;
  }

  /// Describes the sizes: "3 + 3 layers, width 128, 4 heads, feed-forward 256".
  std::string describe() const;
  /// Returns what the user must also give so that an option has an effect, such as "--transformer-positions learned"
  /// for "max-positions"; an empty string if the option has an effect.
  std::string unmet_need(std::string_view option) const;
  /// Throws UsageError, with the names of the options, if fields of the config contradict each other: the number of
  /// heads does not divide the width, sinusoidal positions have an odd width, or `--tied-embeddings all` has
  /// vocabularies of different sizes.
  void validate() const;
};

}  // namespace heed
