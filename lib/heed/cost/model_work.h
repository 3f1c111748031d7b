#pragma once

#include <cstdint>
#include <vector>

#include "heed/data/examples.h"
#include "heed/model/model.h"

namespace heed {

/// Counts of tokens and of (query, key) pairs, to which the work of a model is proportional. The counts describe
/// sentence pairs in training, or steps of decoding.
struct TokenCounts {
  /// Numbers of source and target tokens, with `</s>` or `<s>`. In decoding, each hypothesis counts as one target token
  /// in each step.
  std::int64_t source = 0, target = 0;
  /// Numbers of (query, key) pairs for which attention computes a logit.
  std::int64_t encoder_pairs = 0, decoder_pairs = 0, cross_pairs = 0;

  /// Adds the counts of an example in training or scoring, where the model computes all positions at once.
  void add(ExampleSize example);
  /// Returns the number of (query, key) pairs of one kind of attention.
  std::int64_t pairs(AttentionKind kind) const;
  TokenCounts& operator+=(const TokenCounts& other);
};

/// Numbers of multiply-adds in a forward pass. A training step needs three times as many: the forward product, and in
/// the backward pass the gradients of the product's input and of its weight. For attention, the two products of a head
/// become six.
struct ModelWork {
  /// Multiply-adds of the matrix products that Model::products() lists.
  std::int64_t layers = 0;
  /// Multiply-adds of attention: the products Q K^T and P V.
  std::int64_t attention = 0;
  /// Multiply-adds of the output layer's matrix product.
  std::int64_t output = 0;
};
/// Counts the work of a forward pass of `model` over the tokens and the pairs that `counts` has.
ModelWork forward_work(const Model<float>& model, const TokenCounts& counts);

}  // namespace heed
