#pragma once

#include <cstdint>
#include <vector>

#include "heed/model/transformer.h"

namespace heed {

/// Whether a matrix product is computed for each source token or for each target token.
enum class TokenSide { source, target };

/// One matrix product in a layer: rows [N, inputs] times a weight [outputs, inputs]. The weight may consist of several
/// parameters that lie side by side (query, key and value).
struct LayerProduct {
  ParameterId weight, bias;
  std::int64_t outputs = 0, inputs = 0;
  TokenSide side = TokenSide::source;
  /// Whether the matrix product is in the encoder. A decoder product over source tokens is the cross-attention's key
  /// and value projection.
  bool in_encoder = false;
  /// Whether the feed-forward activation is applied to the result of this matrix product, which is the first matrix
  /// product of a feed-forward layer.
  bool activated = false;
  /// Whether the input of this matrix product is the result of the activation. The product is then the second matrix
  /// product of a feed-forward layer.
  bool of_activated = false;

  std::int64_t size() const { return outputs * inputs; }
  Shape shape() const { return {outputs, inputs}; }
};

/// Returns the matrix products of all layers in the order of the forward pass, found by the names of the parameters.
/// Leaves out the product of the output layer.
std::vector<LayerProduct> layer_products(const Transformer<float>& model);

/// Counts of tokens and of (query, key) pairs, to which the work of a Transformer is proportional. The counts describe
/// sentence pairs in training, or steps of decoding.
struct TokenCounts {
  /// Numbers of source and target tokens, with `</s>` or `<s>`. In decoding, each hypothesis counts as one target token
  /// in each step.
  std::int64_t source = 0, target = 0;
  /// Numbers of (query, key) pairs for which attention computes a logit.
  std::int64_t encoder_pairs = 0, decoder_pairs = 0, cross_pairs = 0;

  /// Adds the counts of a sentence pair in training or scoring, where the model computes all positions at once.
  void add(std::int64_t source_tokens, std::int64_t target_tokens);
  TokenCounts& operator+=(const TokenCounts& other);
};

/// Numbers of multiply-adds in a forward pass. A training step needs three times as many: the forward product, and in
/// the backward pass the gradients of the product's input and of its weight. For attention, the two products of a head
/// become six.
struct TransformerWork {
  /// Multiply-adds of the matrix products that layer_products() returns.
  std::int64_t layers = 0;
  /// Multiply-adds of attention: the products Q K^T and P V.
  std::int64_t attention = 0;
  /// Multiply-adds of the output layer's matrix product.
  std::int64_t output = 0;
};
TransformerWork forward_work(const Transformer<float>& model, const TokenCounts& counts);

}  // namespace heed
