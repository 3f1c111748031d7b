#include "heed/model/transformer_config.h"

#include "heed/base/error.h"

namespace heed {
namespace {

/// The sizes of the model that one preset of `train --task` stands for.
struct Sizes {
  TransformerPreset preset;
  int depth;  // number of encoder layers, and also of decoder layers
  std::int64_t dim_emb;
  int heads;
  std::int64_t dim_ffn;
};

/// The presets of `train --task`. A preset decides sizes only: dropout, norm, activation etc. are the same for all
/// presets and are the default values of ModelFields. base and big have the sizes of Vaswani et al. 2017, table 3. The
/// manual page man/train.1 repeats these numbers under --task.
constexpr Sizes kPresets[] = {{TransformerPreset::tiny, 4, 128, 4, 256},
                              {TransformerPreset::mini, 3, 256, 4, 1024},
                              {TransformerPreset::small, 6, 512, 4, 1024},
                              {TransformerPreset::base, 6, 512, 8, 2048},
                              {TransformerPreset::big, 6, 1024, 16, 4096}};

void set_sizes(TransformerConfig& config, TransformerPreset preset) {
  for (const Sizes& sizes : kPresets) {
    if (sizes.preset != preset) continue;
    config.enc_depth = config.dec_depth = sizes.depth;
    config.dim_emb = sizes.dim_emb;
    config.heads = sizes.heads;
    config.dim_ffn = sizes.dim_ffn;
    return;
  }
  throw Error("internal: unknown preset");
}

}  // namespace

TransformerConfig::TransformerConfig() {
  set_sizes(*this, kDefaultPreset);
}

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

std::string TransformerConfig::describe() const {
  return std::to_string(enc_depth) + " + " + std::to_string(dec_depth) + " layers, width " + std::to_string(dim_emb) +
         ", " + std::to_string(heads) + " heads, feed-forward " + std::to_string(dim_ffn);
}

TransformerConfig ModelOptions::resolve(std::int64_t source_vocabulary, std::int64_t target_vocabulary) const {
  TransformerConfig config;
  config.source_vocabulary = source_vocabulary;
  config.target_vocabulary = target_vocabulary;
  set_sizes(config, task);
  ModelOptions options = *this;
  const FieldList given = FieldList::of(static_cast<ModelFields&>(options)), all = FieldList::of(config);
  for (const Field& field : given.all())
    if (const auto text = field.get_text(); !text.empty()) all.find(field.info.name)->set_text(text);
  if (tied_embeddings_all) config.tied_embeddings = TiedEmbeddings::all;
  config.validate();
  return config;
}

}  // namespace heed
