#include "heed/model/transformer_config.h"

#include "heed/base/error.h"

namespace heed {
namespace {

struct Sizes {
  int depth;
  std::int64_t dim_emb;
  int heads;
  std::int64_t dim_ffn;
};

Sizes preset_sizes(TransformerPreset preset) {
  switch (preset) {
    case TransformerPreset::tiny:
      return {4, 128, 4, 256};
    case TransformerPreset::mini:
      return {3, 256, 4, 1024};
    case TransformerPreset::small:
      return {6, 512, 4, 1024};
    case TransformerPreset::base:
      return {6, 512, 8, 2048};
    case TransformerPreset::big:
      return {6, 1024, 16, 4096};
  }
  throw Error("internal: unknown preset");
}

}  // namespace

void TransformerConfig::validate() const {
  const auto number = [](auto n) { return std::to_string(n); };
  if (dim_emb % heads != 0)
    throw UsageError("--dim-emb " + number(dim_emb) + " is not a multiple of --transformer-heads " + number(heads));
  if (positions != PositionEncoding::learned && dim_emb % 2 != 0)
    throw UsageError("--dim-emb " + number(dim_emb) + " is odd: sinusoidal positions need an even width");
  if (tied_embeddings == TiedEmbeddings::all && source_vocabulary != target_vocabulary)
    throw UsageError("--tied-embeddings-all needs one vocabulary for both sides, but the source has " +
                     number(source_vocabulary) + " pieces and the target " + number(target_vocabulary) +
                     " (give -v one file)");
}

TransformerConfig ModelOptions::resolve(std::int64_t source_vocabulary, std::int64_t target_vocabulary) const {
  const Sizes sizes = preset_sizes(task);
  TransformerConfig config;
  config.source_vocabulary = source_vocabulary;
  config.target_vocabulary = target_vocabulary;
  config.dim_emb = dim_emb.value_or(sizes.dim_emb);
  config.enc_depth = enc_depth.value_or(sizes.depth);
  config.dec_depth = dec_depth.value_or(sizes.depth);
  config.heads = heads.value_or(sizes.heads);
  config.dim_ffn = dim_ffn.value_or(sizes.dim_ffn);
  config.norm = norm;
  config.ffn_activation = ffn_activation;
  config.positions = positions;
  config.max_positions = max_positions;
  config.tied_embeddings = tied_embeddings_all ? TiedEmbeddings::all : tied_embeddings;
  config.output_bias = output_bias;
  config.dropout = dropout;
  config.attention_dropout = attention_dropout;
  config.ffn_dropout = ffn_dropout;
  config.validate();
  return config;
}

}  // namespace heed
