#include "heed/cost/model_work.h"

#include <algorithm>
#include <cmath>

#include "heed/base/error.h"
#include "heed/ops/attention.h"

namespace heed {

void TokenCounts::add(ExampleSize example) {
  const std::int64_t source_tokens = example.source, target_tokens = example.target;
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

std::int64_t TokenCounts::pairs(AttentionKind kind) const {
  switch (kind) {
    case AttentionKind::encoder:
      return encoder_pairs;
    case AttentionKind::decoder:
      return decoder_pairs;
    case AttentionKind::cross:
      return cross_pairs;
  }
  throw Error("internal: unknown kind of attention");
}

ModelWork forward_work(const Model<float>& model, const TokenCounts& counts) {
  ModelWork work;
  for (const Product& product : model.products())
    work.layers +=
        product.size() * (product.side == TokenSide::source ? counts.source : counts.target) / product.tokens_per_row;
  for (const AttentionLayers& attention : model.attention_layers()) {
    const std::int64_t queries = counts.source / attention.tokens_per_query;
    const std::int64_t pairs = attention.window > 0 ? std::llround(attention.window * static_cast<double>(queries))
                                                    : counts.pairs(attention.kind);
    work.attention += 2 * attention.width * attention.layers * pairs;
  }
  work.output = model.target_vocabulary() * model.width() * counts.target;
  return work;
}

}  // namespace heed
