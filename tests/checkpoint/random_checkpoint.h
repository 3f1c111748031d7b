#pragma once

#include <memory>

#include "heed/checkpoint/checkpoint.h"
#include "heed/model/transformer.h"

namespace heed {

/// Returns the config of a tiny model for tests: one layer, 16 columns.
inline TransformerConfig tiny_config() {
  TransformerConfig config;
  config.dim_emb = 16;
  config.heads = 2;
  config.dim_ffn = 24;
  config.enc_depth = config.dec_depth = 1;
  return config;
}

/// Returns an untrained model. The weights are twice as large as the initial values of training, so that the model's
/// output distributions are far from uniform, and beam searches end at different lengths.
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
