#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "heed/model/config_fields.h"
#include "heed/model/image_input.h"
#include "heed/nn/window_partition.h"

namespace heed {

/// The sizes of a Swin Transformer that have a name; kSwinSizes in swin_config.cpp lists them.
enum class SwinSize { tiny_2, tiny, small, base };

/// The complete definition of a Swin Transformer that classifies images (Liu et al. 2021). The target vocabulary has
/// the labels; the number of classes is its size without the reserved pieces.
///
/// The model has stages, counted from 0. The patches of an image are the tokens of stage 0; each further stage has a
/// quarter of the tokens, half as many in each direction, and twice the width.
struct SwinConfig : ImageModelFields {
  static constexpr std::string_view kArchitecture = "swin", kName = "Swin Transformer";

  std::int64_t dim_emb = 0;        ///< the width of stage 0
  std::vector<int> depths, heads;  ///< for each stage, the numbers of its layers and of the heads of each layer
  int window = 7;                  ///< M: a token attends to the tokens of a window of M x M
  double mlp_ratio = 4;            ///< the width of a feed-forward layer, as a multiple of the width of its stage
  double dropout = 0;              ///< dropout probability on the output of every sublayer
  double attention_dropout = 0;    ///< dropout probability on attention weights
  double ffn_dropout = 0;          ///< dropout probability after the activation of the feed-forward layer

  explicit SwinConfig(SwinSize size = SwinSize::tiny_2);

  template <class Visitor>
  void option_fields(Visitor& visit) {
    image_fields(visit);
    visit(dim_emb, {.name = "dim-emb",
                    .help = "width of embeddings and of the first stage; each further stage has twice the width",
                    .value = "N",
                    .min = 1,
                    .max = kMostWidth,
                    .preset = true});
    visit(depths,
          {.name = "swin-depths", .help = "layers of each stage", .value = "N", .min = 1, .max = 1024, .preset = true});
    visit(heads, {.name = "swin-heads",
                  .help = "attention heads of each stage",
                  .value = "N",
                  .min = 1,
                  .max = 1024,
                  .preset = true});
    visit(window, {.name = "window-size",
                   .help = "width and height of the windows within which tokens attend to each other, in tokens",
                   .value = "N",
                   .min = 1,
                   .max = 256,
                   .preset = true});
    visit(mlp_ratio, {.name = "mlp-ratio",
                      .help = "width of a feed-forward layer, as a multiple of the width of its stage",
                      .value = "X",
                      .min = 0.125,
                      .max = 64});
    visit(dropout, dropping_field("dropout", "dropout on the output of each sublayer"));
    visit(attention_dropout, kAttentionDropoutField);
    visit(ffn_dropout, kFfnDropoutField);
    stochastic_depth_field(visit);
  }
  template <class Visitor>
  void fields(Visitor& visit) {
    stored_fields(*this, visit);
  }

  int stages() const { return static_cast<int>(depths.size()); }
  /// Returns the number of layers of all stages.
  int layers() const;
  /// Returns the tokens of a stage, which lie in a square.
  GridSize grid(int stage) const;
  std::int64_t width(int stage) const { return dim_emb << stage; }
  std::int64_t dim_ffn(int stage) const;
  /// Returns the probability that an image leaves out a sublayer of layer number `layer`, counted over all stages, as
  /// torchvision computes it.
  double left_out(int layer) const;

  /// Returns the number of tokens of an image in stage 0.
  int tokens() const { return static_cast<int>(grid(0).tokens()); }
  /// Returns the mean number of tokens for which a weight of the layers is multiplied: fewer than tokens(), because the
  /// later stages have more weights and fewer tokens.
  int mean_tokens() const;
  /// Throws UsageError where the lists do not fit each other, the heads do not fit the widths, or patches and windows
  /// do not fit the images.
  void validate() const;
  std::string describe() const;
};

}  // namespace heed
