#pragma once

#include <cstdint>
#include <vector>

#include "heed/model/transformer.h"

namespace heed {

/// Whether a product is computed for each source token or for each target token.
enum class TokenSide { source, target };

/// One matrix product in a layer: rows [N, inputs] times a weight [outputs, inputs]. The weight may consist of several
/// parameters that lie side by side (query, key and value).
struct LayerProduct {
  ParameterId weight, bias;
  std::int64_t outputs = 0, inputs = 0;
  TokenSide side = TokenSide::source;
  /// Whether the product is in the encoder. In the decoder, a product over source tokens is the cross-attention's key
  /// and value projection.
  bool in_encoder = false;
  /// Whether the feed-forward activation follows this product (first product of the feed-forward layer).
  bool activated = false;
  /// Whether the product's input has passed the activation (second product of the feed-forward layer).
  bool of_activated = false;

  std::int64_t size() const { return outputs * inputs; }
  Shape shape() const { return {outputs, inputs}; }
};

/// Returns the products of all layers in the order of the forward pass, found by the names of the parameters. The
/// product of the output layer is not included.
std::vector<LayerProduct> layer_products(const Transformer<float>& model);

/// Counts that the work of a Transformer is proportional to, for sentence pairs in training or for steps of decoding.
struct TokenCounts {
  /// Numbers of tokens, with </s> or <s>; in decoding, a row of a step counts as a target token.
  std::int64_t source = 0, target = 0;
  /// Numbers of (query, key) pairs for which attention computes a logit.
  std::int64_t encoder_pairs = 0, decoder_pairs = 0, cross_pairs = 0;

  /// Adds a sentence pair in training or scoring, where the model computes all positions at once.
  void add(std::int64_t source_tokens, std::int64_t target_tokens);
  TokenCounts& operator+=(const TokenCounts& other);
};

/// Multiply-adds of a forward pass. A training step needs three times as many: the forward product, and in the backward
/// pass the gradients of its input and of its weight. For attention, the two products of a head become six.
struct TransformerWork {
  std::int64_t layers = 0;     ///< the products that layer_products() returns
  std::int64_t attention = 0;  ///< the products Q K^T and P V
  std::int64_t output = 0;     ///< the product of the output layer
};
TransformerWork forward_work(const Transformer<float>& model, const TokenCounts& counts);

}  // namespace heed
