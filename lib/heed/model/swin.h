#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "heed/model/image_classifier.h"
#include "heed/model/swin_config.h"
#include "heed/nn/feed_forward.h"
#include "heed/nn/multi_head_attention.h"
#include "heed/nn/norm_chain.h"
#include "heed/nn/window_partition.h"

namespace heed {

/// The windows of all images of a batch within which a layer attends: the plain windows or the shifted windows of a
/// stage. `offsets` and `windows` are operands of attention. gather_rows(x, to) brings rows from the order of the plain
/// windows into the order of these windows, and gather_rows(x, back) brings them back; `to` and `back` are empty for
/// the plain windows.
struct BatchWindows {
  PackedOffsets offsets;
  PackedWindows windows;
  std::span<const std::int32_t> to, back;
};

/// A layer of a Swin Transformer (Liu et al. 2021, section 3.2): self-attention within windows, with a relative
/// position bias, and a feed-forward layer. The parameters are stages/S/layers/N/{self_attention,feed_forward}/...,
/// stages/S/layers/N/relative_positions/weight [(2M - 1)^2, H] and the norms stages/S/layers/N/{self_attention_norm,
/// feed_forward_norm}.
class SwinLayer {
 public:
  /// Adds the parameters of the layer number `index` of a stage to `layout`, and its norms to `norms`. `number` is the
  /// number of the layer, counted over all stages.
  SwinLayer(ParameterLayout& layout, NormChain& norms, const SwinConfig& config, int stage, int index, int number);

  /// Adds both sublayers to the residual stream, whose rows are in the order of the plain windows. `windows` are those
  /// within which this layer attends.
  template <class T>
  void forward(Graph<T>& graph, const NormChain& norms, ResidualStream<T>& stream, const BatchWindows& windows,
               Trace<T>* trace) const;
  void add_products(Product place, std::vector<Product>& products) const;

 private:
  int number_, window_;
  double left_out_;
  MultiHeadAttention self_attention_;
  ParameterId relative_positions_;
  FeedForward feed_forward_;
};

/// A stage of a Swin Transformer: layers over one grid of tokens, and behind all stages but the last, patch merging,
/// with the parameters stages/S/merging/norm/{scale,bias} and stages/S/merging/weight [2C, 4C].
///
/// The tokens of a stage are in the order of its plain windows, in which every other layer attends.
struct SwinStage {
  GridSize grid;
  WindowPartition plain, shifted;
  /// Orders for gather_rows(): `to_shifted` brings rows from the order of the plain windows into the order of the
  /// shifted windows, and `from_shifted` brings them back. Both are empty if one window covers the grid, so that no
  /// layer shifts.
  std::vector<std::int32_t> to_shifted = {}, from_shifted = {};
  NormChain norms;
  std::vector<SwinLayer> layers = {};
  /// The order of tokens for patch merging: from the plain windows of this stage to those of the next one.
  std::vector<std::int32_t> merging_order = {};
  Norm merging_norm = {};
  Product merging = {};
};

/// The Swin Transformer (Liu et al. 2021) as a classifier, as torchvision computes it: embedded patches with a norm,
/// stages of layers with patch merging between them, a norm, and the mean of all tokens as the feature of the image.
/// The parameters are patches/{weight [D, C P P],bias}, patches_norm/{scale,bias}, those of SwinLayer and SwinStage,
/// norm/{scale,bias} and output.
template <class T>
class Swin : public ImageClassifier<T> {
 public:
  /// Throws UsageError if fields of the config contradict each other.
  explicit Swin(const SwinConfig& config);

  Variable<T> features(Graph<T>& graph, const PackedIds& images, Trace<T>* trace = nullptr) const override;
  std::vector<Product> products() const override;
  std::vector<AttentionLayers> attention_layers() const override;
  std::optional<ImageGrid> image_grid(AttentionKind kind, int layer) const override;

 private:
  /// Returns the tokens of stage 0, in the order of its plain windows.
  Variable<T> embed(Graph<T>& graph, const PackedIds& images) const;

  SwinConfig swin_;
  Product patches_;
  Norm patches_norm_;
  std::vector<SwinStage> stages_;
};

extern template class Swin<float>;
extern template class Swin<double>;

}  // namespace heed
