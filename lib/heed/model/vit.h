#pragma once

#include <optional>
#include <vector>

#include "heed/model/image_classifier.h"
#include "heed/model/transformer.h"
#include "heed/model/vit_config.h"
#include "heed/nn/patch_embedding.h"

namespace heed {

/// The vision Transformer (Dosovitskiy et al. 2021, section 3.1): a pre-norm encoder over the patches of an image and a
/// class token, whose last vector is the feature of the image; or, with ImagePooling::mean, over the patches alone,
/// whose mean is the feature. The parameters are encoder/{patches,class_token,positions} (nn/patch_embedding.h),
/// encoder/layers/N/..., encoder/norm and output.
template <class T>
class Vit : public ImageClassifier<T> {
 public:
  /// Throws UsageError if fields of the config contradict each other.
  explicit Vit(const VitConfig& config);

  Variable<T> features(Graph<T>& graph, const PackedIds& images, Trace<T>* trace = nullptr) const override;
  std::vector<Product> products() const override;
  std::vector<AttentionLayers> attention_layers() const override;
  std::optional<ImageGrid> image_grid(AttentionKind kind, int layer) const override;
  std::vector<PositionTable> position_tables(Graph<T>& graph, std::int64_t positions) const override;

 private:
  VitConfig vit_;
  std::optional<PatchEmbedding> embedding_;
  NormChain norms_;
  std::vector<EncoderLayer> layers_;
};

/// A Transformer whose encoder reads the patches of an image, and whose decoder writes a sentence about it. The encoder
/// is that of a Vit without a class token; the decoder is pre-norm with sinusoidal positions.
template <class T>
class VitCaption : public Transformer<T> {
 public:
  /// Throws UsageError if fields of the config contradict each other.
  explicit VitCaption(const VitCaptionConfig& config);

  std::vector<Product> products() const override;
  std::vector<PositionTable> position_tables(Graph<T>& graph, std::int64_t positions) const override;
  std::optional<ImageGrid> image_grid(AttentionKind kind, int layer) const override;
  std::optional<ResidualNorms> residual_norms() const override { return {}; }

 protected:
  typename Transformer<T>::SourceTokens embed_source(Graph<T>& graph, const PackedIds& images) const override;

 private:
  VitCaptionConfig caption_;
  PatchEmbedding embedding_;
};

extern template class Vit<float>;
extern template class Vit<double>;
extern template class VitCaption<float>;
extern template class VitCaption<double>;

}  // namespace heed
