#pragma once

#include <memory>

#include "heed/checkpoint/checkpoint.h"

namespace heed {

/// A tiny config for tests.
inline TransformerConfig tiny_config() {
  TransformerConfig config;
  config.dim_emb = 16;
  config.heads = 2;
  config.dim_ffn = 24;
  config.enc_depth = config.dec_depth = 1;
  return config;
}

/// A model that nobody trained. Its weights are larger than at the start of training: far from uniform, so that
/// searches end at different lengths.
inline Checkpoint random_checkpoint(TransformerConfig config, const TextModel& source, const TextModel& target,
                                    std::uint64_t seed) {
  config.source_vocabulary = source.size();
  config.target_vocabulary = target.size();
  auto model = std::make_shared<const Transformer<float>>(config);
  ParameterValues<float> parameters(model->layout());
  parameters.initialise(seed);
  for (float& x : parameters.flat()) x *= 2;
  return {std::move(model), std::move(parameters), source, target};
}

}  // namespace heed
