#pragma once

#include <cstdint>
#include <vector>

#include "heed/model/transformer.h"

namespace heed {

/// Which tokens a product of the layers is computed for.
enum class TokenSide { source, target };

/// One matrix product of the layers: rows [N, inputs] times a weight [outputs, inputs], which may be several parameters
/// side by side (query, key and value).
struct LayerProduct {
  ParameterId weight, bias;
  std::int64_t outputs = 0, inputs = 0;
  TokenSide side = TokenSide::source;
  bool in_encoder = false;    ///< else the decoder's, and one of source tokens is of each sentence's keys and values
  bool activated = false;     ///< followed by the feed-forward activation
  bool of_activated = false;  ///< of what that gives

  std::int64_t size() const { return outputs * inputs; }
  Shape shape() const { return {outputs, inputs}; }
};

/// The products of all layers, in the order of the forward pass; found in the layout's names. The output layer's is not
/// among them.
std::vector<LayerProduct> layer_products(const Transformer<float>& model);

/// What pairs of sentences, or steps of decoding, are made of: sums that the work of a Transformer is proportional to.
struct TokenCounts {
  std::int64_t source = 0, target = 0;  ///< tokens, </s> or <s> included; a step's rows are target tokens
  /// Queries times keys that attention compares them with.
  std::int64_t encoder_pairs = 0, decoder_pairs = 0, cross_pairs = 0;

  /// A pair in training or scoring: all positions at once.
  void add(std::int64_t source_tokens, std::int64_t target_tokens);
  TokenCounts& operator+=(const TokenCounts& other);
};

/// Multiply-adds of a forward pass. Training does each product three times: forward, by its input and by its weight;
/// and attention's two products of a head six times in all, forward ones included.
struct TransformerWork {
  std::int64_t layers = 0;     ///< of the layers' products
  std::int64_t attention = 0;  ///< Q K^T and P V
  std::int64_t output = 0;     ///< of the output layer
};
TransformerWork forward_work(const Transformer<float>& model, const TokenCounts& counts);

}  // namespace heed
