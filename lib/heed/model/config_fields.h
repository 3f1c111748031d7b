#pragma once

#include <cstdint>
#include <string_view>
#include <utility>

#include "heed/config/fields.h"
#include "heed/nn/attention_scoring.h"
#include "heed/ops/gemm/gemm_int8.h"

namespace heed {

// What the configs of several architectures have in common.

/// Which layers of the model share one weight matrix. `none`: no layers; `decoder`: the target embedding and the output
/// layer; `all`: the source embedding, the target embedding and the output layer, which needs one vocabulary for both
/// languages.
enum class TiedEmbeddings { none, decoder, all };

template <>
struct EnumNames<TiedEmbeddings> {
  static constexpr std::pair<TiedEmbeddings, std::string_view> values[] = {
      {TiedEmbeddings::none, "none"}, {TiedEmbeddings::decoder, "decoder"}, {TiedEmbeddings::all, "all"}};
};
template <>
struct EnumNames<AttentionScoring> {
  static constexpr std::pair<AttentionScoring, std::string_view> values[] = {{AttentionScoring::dot, "dot"},
                                                                             {AttentionScoring::additive, "additive"}};
};

/// The maximum width of a layer, in columns. Matrix products in int8 are exact up to kInt8MostDepth columns; the
/// static_assert checks that no layer can be wider.
constexpr std::int64_t kMostWidth = 1 << 20;
static_assert(kMostWidth <= kInt8MostDepth);

/// The fields of all models with the layers of a Transformer.
inline constexpr FieldInfo kDimEmbField = {.name = "dim-emb",
                                           .help = "width of embeddings and layers",
                                           .value = "N",
                                           .min = 1,
                                           .max = kMostWidth,
                                           .preset = true};
inline constexpr FieldInfo kEncDepthField = {
    .name = "enc-depth", .help = "encoder layers", .value = "N", .min = 1, .max = 1024, .preset = true};
inline constexpr FieldInfo kDecDepthField = {
    .name = "dec-depth", .help = "decoder layers", .value = "N", .min = 1, .max = 1024, .preset = true};
inline constexpr FieldInfo kHeadsField = {
    .name = "transformer-heads", .help = "attention heads", .value = "N", .min = 1, .max = 1024, .preset = true};
inline constexpr FieldInfo kDimFfnField = {.name = "transformer-dim-ffn",
                                           .help = "width of the feed-forward layer",
                                           .value = "N",
                                           .min = 1,
                                           .max = kMostWidth,
                                           .preset = true};
/// Returns the description of a probability with which training leaves something out.
constexpr FieldInfo dropping_field(std::string_view name, std::string_view help, bool later = false) {
  return {.name = name, .help = help, .value = "P", .min = 0, .max = 0.99, .later = later, .training_only = true};
}
inline constexpr FieldInfo kDropoutField =
    dropping_field("dropout", "dropout on embeddings and on the output of each sublayer");
inline constexpr FieldInfo kAttentionDropoutField = dropping_field("attention-dropout", "dropout on attention weights");
inline constexpr FieldInfo kFfnDropoutField = dropping_field("ffn-dropout", "dropout in the feed-forward layer");

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

/// Throws UsageError if all embeddings are tied but the vocabularies have different sizes.
void check_tied_embeddings(TiedEmbeddings tied, const VocabularySizes& sizes);

}  // namespace heed
