#include "heed/model/vit_config.h"

#include "heed/base/error.h"

namespace heed {
namespace {

/// The sizes of a vision Transformer, of which tiny_4 has the width and depth of ViT-Ti with patches for small images.
struct VitSizes {
  VitSize size;
  int image, patch;
  std::int64_t dim_emb;
  int enc_depth, heads;
  std::int64_t dim_ffn;
};
constexpr VitSizes kVitSizes[] = {{VitSize::tiny_4, 32, 4, 192, 12, 3, 768},
                                  {VitSize::small_16, 224, 16, 384, 12, 6, 1536},
                                  {VitSize::base_16, 224, 16, 768, 12, 12, 3072},
                                  {VitSize::large_16, 224, 16, 1024, 24, 16, 4096}};

}  // namespace

TransformerConfig VitEncoder::layers() const {
  TransformerConfig out;
  out.dim_emb = dim_emb;
  out.enc_depth = enc_depth;
  out.heads = heads;
  out.dim_ffn = dim_ffn;
  out.norm = NormPlacement::pre;
  out.ffn_activation = FeedForwardActivation::gelu;
  out.positions = PositionEncoding::none;
  out.dropout = dropout;
  out.attention_dropout = attention_dropout;
  out.ffn_dropout = ffn_dropout;
  out.stochastic_depth = stochastic_depth;
  out.norm_epsilon = norm_epsilon;
  return out;
}

void VitEncoder::validate() const {
  validate_images();
  layers().validate();
}

std::string VitEncoder::describe() const {
  return image.describe() + ", patches of " + std::to_string(patch) + " x " + std::to_string(patch) + ", " +
         std::to_string(enc_depth) + " layers, width " + std::to_string(dim_emb) + ", " + std::to_string(heads) +
         " heads, feed-forward " + std::to_string(dim_ffn);
}

VitConfig::VitConfig(VitSize size) {
  for (const VitSizes& each : kVitSizes)
    if (each.size == size) {
      image.size = each.image;
      patch = each.patch;
      dim_emb = each.dim_emb;
      enc_depth = each.enc_depth;
      heads = each.heads;
      dim_ffn = each.dim_ffn;
    }
}

std::string VitConfig::describe() const {
  return VitEncoder::describe() + ", " + describe_classes();
}

VitCaptionConfig::VitCaptionConfig() {
  image.size = 32;
  patch = 4;
  dim_emb = 128;
  enc_depth = 3;
  heads = 4;
  dim_ffn = 256;
  dropout = 0.1;
}

TransformerConfig VitCaptionConfig::transformer() const {
  TransformerConfig out = layers();
  out.source_vocabulary = source_vocabulary;
  out.target_vocabulary = target_vocabulary;
  out.dec_depth = dec_depth;
  out.tied_embeddings = tied_embeddings;
  out.positions = PositionEncoding::interleaved;
  return out;
}

void VitCaptionConfig::validate() const {
  VitEncoder::validate();
  if (tied_embeddings == TiedEmbeddings::all)
    throw UsageError("--tied-embeddings all: an image has no embedding to share (decoder shares the others)");
  transformer().validate();
}

std::string VitCaptionConfig::describe() const {
  return VitEncoder::describe() + ", " + std::to_string(dec_depth) + " decoder layers";
}

}  // namespace heed
