#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "heed/model/transformer.h"
#include "test_device.h"

namespace heed {

/// The target vocabulary of most tests: it has more columns than LogSoftmaxTopK reads at once.
constexpr int kPieces = 700;

/// A small model with random weights for tests of searches.
struct RandomModel {
  TransformerConfig config;
  std::unique_ptr<Transformer<float>> model;
  std::unique_ptr<ParameterValues<float>> parameters;

  /// `choose` may change the config; `width` is the width of the layers.
  RandomModel(int target_vocabulary, int layers, std::uint64_t seed, int width = 40,
              const std::function<void(TransformerConfig&)>& choose = {}) {
    config.source_vocabulary = 83;
    config.target_vocabulary = target_vocabulary;
    config.dim_emb = width;
    config.heads = 4;
    config.dim_ffn = 72;
    config.enc_depth = config.dec_depth = layers;
    if (choose) choose(config);
    model = std::make_unique<Transformer<float>>(config);
    parameters = std::make_unique<ParameterValues<float>>(model->layout());
    parameters->initialise(seed);
    // Larger weights sharpen the distributions, so that hypotheses end at different lengths.
    for (float& x : parameters->flat()) x *= 2;
  }

  /// Returns the parameters as inference reads them on the device on which tests compute.
  std::shared_ptr<PackedParameters<float>> packed() const { return test_parameters(*parameters); }
};

/// The kinds of Transformers that decode in another way than the plain one.
inline const std::vector<std::pair<const char*, std::function<void(TransformerConfig&)>>> kinds_of_transformer = {
    {"layerwise cross-attention", [](TransformerConfig& c) { c.cross_attention = CrossAttention::layerwise; }},
    {"average attention",
     [](TransformerConfig& c) {
       c.decoder_autoreg = DecoderAutoreg::average;
       c.dim_aan = 24;
     }},
    {"average attention without feed-forward layer",
     [](TransformerConfig& c) {
       c.decoder_autoreg = DecoderAutoreg::average;
       c.norm = NormPlacement::pre;
     }},
    {"additive attention", [](TransformerConfig& c) { c.attention = AttentionScoring::additive; }},
    {"no positions", [](TransformerConfig& c) { c.positions = PositionEncoding::none; }},
    {"relative positions", [](TransformerConfig& c) { c.positions = PositionEncoding::relative; }},
    {"ALiBi", [](TransformerConfig& c) { c.positions = PositionEncoding::alibi; }},
    {"rotary positions", [](TransformerConfig& c) { c.positions = PositionEncoding::rotary; }},
    {"T5 positions", [](TransformerConfig& c) { c.positions = PositionEncoding::t5; }},
    {"SSRU", [](TransformerConfig& c) { c.decoder_autoreg = DecoderAutoreg::rnn; }},
    {"tied layers",
     [](TransformerConfig& c) {
       c.tied_layers = {1, 1};
     }},
    {"mixed cross-attention",
     [](TransformerConfig& c) {
       c.cross_attention = CrossAttention::mix;
       c.norm = NormPlacement::pre;
     }},
};

/// Returns a random source sentence: 1 to 11 ids and </s>.
inline std::vector<std::int32_t> random_sentence(int seed) {
  std::vector<std::int32_t> ids;
  for (int i = 0; i < 1 + seed % 11; ++i) ids.push_back(4 + (seed * 31 + i * i * 7) % 79);
  ids.push_back(3);
  return ids;
}

}  // namespace heed
