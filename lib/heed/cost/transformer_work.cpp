#include "heed/cost/transformer_work.h"

#include <algorithm>
#include <string_view>

#include "heed/ops/attention.h"

namespace heed {

std::vector<LayerProduct> layer_products(const Transformer<float>& model) {
  constexpr std::string_view kWeight = "/weight";
  const ParameterLayout& layout = model.layout();
  std::vector<LayerProduct> out;
  for (const ParameterInfo& info : layout.all()) {
    const std::string_view name = info.name;
    const bool encoder = name.starts_with("encoder/layers/"), decoder = name.starts_with("decoder/layers/");
    if (!(encoder || decoder) || !name.ends_with(kWeight)) continue;
    const std::string_view module = name.substr(0, name.size() - kWeight.size());
    const bool cross = name.find("/cross_attention/") != name.npos;
    const bool query = module.ends_with("/query"), key = module.ends_with("/key"), value = module.ends_with("/value");
    // Self-attention computes query, key and value in one matrix product, which is listed at the query weight.
    // Cross-attention computes key and value in one matrix product, which is listed at the key weight.
    if (value || (key && !cross)) continue;
    LayerProduct product{.weight = layout.find(info.name), .bias = layout.find(std::string(module) + "/bias")};
    product.outputs = info.shape[0] * (query && !cross ? 3 : key ? 2 : 1);
    product.inputs = info.shape[1];
    product.side = encoder || key ? TokenSide::source : TokenSide::target;
    product.in_encoder = encoder;
    product.activated = module.ends_with("/feed_forward/in");
    product.of_activated = module.ends_with("/feed_forward/out");
    out.push_back(product);
  }
  return out;
}

void TokenCounts::add(std::int64_t source_tokens, std::int64_t target_tokens) {
  source += source_tokens;
  target += target_tokens;
  encoder_pairs += source_tokens * source_tokens;
  // Causal attention compares each block of queries with the keys up to the end of the block.
  decoder_pairs += target_tokens * (target_tokens + std::min(target_tokens, kAttentionQueryBlock)) / 2;
  cross_pairs += source_tokens * target_tokens;
}

TokenCounts& TokenCounts::operator+=(const TokenCounts& other) {
  source += other.source;
  target += other.target;
  encoder_pairs += other.encoder_pairs;
  decoder_pairs += other.decoder_pairs;
  cross_pairs += other.cross_pairs;
  return *this;
}

TransformerWork forward_work(const Transformer<float>& model, const TokenCounts& counts) {
  const TransformerConfig& config = model.config();
  TransformerWork work;
  for (const LayerProduct& product : layer_products(model))
    work.layers += product.size() * (product.side == TokenSide::source ? counts.source : counts.target);
  work.attention =
      2 * config.dim_emb *
      (config.enc_depth * counts.encoder_pairs + config.dec_depth * (counts.decoder_pairs + counts.cross_pairs));
  work.output = config.target_vocabulary * config.dim_emb * counts.target;
  return work;
}

}  // namespace heed
