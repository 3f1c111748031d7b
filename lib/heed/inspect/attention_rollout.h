#pragma once

#include <cstddef>
#include <span>
#include <vector>

namespace heed {

/// Attention rollout (Abnar and Zuidema 2020, "Quantifying Attention Flow in Transformers", section 3): how much each
/// token after some layers of self-attention consists of each token before the first layer. A layer mixes a token with
/// the tokens that it attends to, and the residual connection keeps the token itself, so that the layer is taken to be
///
///   A' = 0.5 A + 0.5 I,   A: the mean of the heads' weights,
///
/// with rows that sum to 1, and n layers are the product A'_n ... A'_2 A'_1.
class AttentionRollout {
 public:
  /// Begins before the first layer: each token consists of itself.
  explicit AttentionRollout(std::size_t tokens);

  /// Adds the next layer, whose weights [tokens, tokens] are the mean of the layer's heads. Throws Error if there are
  /// not so many weights.
  void add(std::span<const float> weights);
  /// Returns the rollout of the layers so far, [tokens, tokens]: row i says what token i consists of.
  const std::vector<float>& weights() const { return weights_; }

 private:
  std::size_t tokens_;
  std::vector<float> weights_;
};

}  // namespace heed
