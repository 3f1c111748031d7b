#pragma once

#include <memory>
#include <string>
#include <vector>

#include "heed/checkpoint/checkpoint.h"
#include "heed/model/make_model.h"

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

/// Returns the config of a tiny model of any task for tests: one layer, 16 columns.
inline ModelConfig tiny_config(Task task) {
  ModelConfig config = preset(task);
  if (const auto* const transformer = std::get_if<TransformerConfig>(&config)) {
    TransformerConfig out = tiny_config();
    out.decoder_autoreg = transformer->decoder_autoreg;
    return out;
  }
  std::visit(
      [](auto& c) {
        if constexpr (requires { c.dim_rnn; }) {
          c.dim_emb = 12;
          c.dim_rnn = 16;
          c.enc_depth = c.dec_depth = 2;
        }
      },
      config);
  return config;
}

/// Returns a text model with `size` pieces.
inline TextModel numbered_pieces(int size) {
  TextSteps steps;
  steps.mode = TokenMode::none;
  std::vector<std::string> pieces = {"<pad>", "<unk>", "<s>", "</s>"};
  for (int i = 4; i < size; ++i) pieces.push_back("p" + std::to_string(i));
  return TextModel(steps, Subwords(), std::make_shared<const Vocabulary>(pieces));
}

/// Returns an untrained model. The weights are twice as large as the initial values of training, so that the model's
/// output distributions are far from uniform, and beam searches end at different lengths.
inline Checkpoint random_checkpoint(ModelConfig config, const TextModel& source, const TextModel& target,
                                    std::uint64_t seed) {
  std::visit(
      [&](auto& c) {
        c.source_vocabulary = source.size();
        c.target_vocabulary = target.size();
      },
      config);
  std::shared_ptr<const Model<float>> model = make_model<float>(config);
  ParameterValues<float> parameters(model->layout());
  parameters.initialise(seed);
  for (float& x : parameters.flat()) x *= 2;
  return {std::move(model), std::move(parameters), source, target};
}

}  // namespace heed
