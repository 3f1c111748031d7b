#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "heed/model/image_input.h"
#include "heed/model/transformer_config.h"

namespace heed {

/// What a vision Transformer makes of its last layer's tokens before the output layer: the class token, or the mean of
/// all patches, without a class token.
enum class ImagePooling { class_token, mean };

template <>
struct EnumNames<ImagePooling> {
  static constexpr std::pair<ImagePooling, std::string_view> values[] = {{ImagePooling::class_token, "class-token"},
                                                                         {ImagePooling::mean, "mean"}};
};

/// The sizes of a vision Transformer that have a name; kVitSizes in vit_config.cpp lists them.
enum class VitSize { tiny_4, small_16, base_16, large_16 };

/// The encoder of a vision Transformer.
struct VitEncoder : ImageModelFields {
  std::int64_t dim_emb = 0;
  int enc_depth = 0, heads = 0;
  std::int64_t dim_ffn = 0;
  double dropout = 0;            ///< dropout probability on embeddings and on the output of every sublayer
  double attention_dropout = 0;  ///< dropout probability on attention weights
  double ffn_dropout = 0;        ///< dropout probability after the activation of the feed-forward layer

  template <class Visitor>
  void option_fields(Visitor& visit) {
    image_fields(visit);
    visit(dim_emb, kDimEmbField);
    visit(enc_depth, kEncDepthField);
    visit(heads, kHeadsField);
    visit(dim_ffn, kDimFfnField);
    visit(dropout, kDropoutField);
    visit(attention_dropout, kAttentionDropoutField);
    visit(ffn_dropout, kFfnDropoutField);
    stochastic_depth_field(visit);
  }

  /// Returns the number of patches along each side of an image.
  int side() const { return image.size / patch; }
  /// Returns the number of patches of an image.
  int patches() const { return side() * side(); }
  /// Returns the config of the layers, pre-norm with GELU, as a Transformer's encoder has.
  TransformerConfig layers() const;
  /// Throws UsageError where the patches do not fit the images, or the heads do not fit the width.
  void validate() const;
  std::string describe() const;
};

/// The complete definition of a vision Transformer that classifies images (Dosovitskiy et al. 2021). The target
/// vocabulary has the labels; the number of classes is its size without the reserved pieces.
struct VitConfig : VitEncoder {
  static constexpr std::string_view kArchitecture = "vit", kName = "Vision Transformer";

  ImagePooling pooling = ImagePooling::class_token;

  explicit VitConfig(VitSize size = VitSize::tiny_4);

  template <class Visitor>
  void option_fields(Visitor& visit) {
    VitEncoder::option_fields(visit);
    visit(pooling, {.name = "image-pooling",
                    .help = "what the output layer reads: the class token, or the mean of all patches"});
  }
  template <class Visitor>
  void fields(Visitor& visit) {
    stored_fields(*this, visit);
  }

  /// Returns the number of tokens of an image.
  int tokens() const { return patches() + (pooling == ImagePooling::class_token ? 1 : 0); }
  std::string describe() const;
};

/// The complete definition of a model that describes images: the encoder of a vision Transformer, all of whose tokens
/// the decoder of a Transformer reads.
struct VitCaptionConfig : VitEncoder {
  static constexpr std::string_view kArchitecture = "vit-caption", kName = "Vision Transformer with a text decoder";

  static constexpr auto kTiedWithoutSource = enum_names(TiedEmbeddings::none, TiedEmbeddings::decoder);

  int dec_depth = 2;
  TiedEmbeddings tied_embeddings = TiedEmbeddings::decoder;

  VitCaptionConfig();

  template <class Visitor>
  void option_fields(Visitor& visit) {
    VitEncoder::option_fields(visit);
    visit(dec_depth, {.name = "dec-depth", .help = "decoder layers", .value = "N", .min = 1, .max = 1024});
    visit(tied_embeddings, {.name = "tied-embeddings",
                            .help = "share one weight: none; decoder's embedding and output layer",
                            .implicit = "decoder",
                            .only = kTiedWithoutSource});
  }
  template <class Visitor>
  void fields(Visitor& visit) {
    stored_fields(*this, visit);
  }

  /// Returns the number of tokens of an image.
  int tokens() const { return patches(); }
  /// Returns the config of the Transformer whose encoder reads the image's tokens.
  TransformerConfig transformer() const;
  void validate() const;
  std::string describe() const;
};

}  // namespace heed
