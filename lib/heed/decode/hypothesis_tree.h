#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "heed/decode/hypotheses.h"

namespace heed {

/// The tokens of the hypotheses of a search. Hypotheses that begin alike share the nodes of their beginning.
class HypothesisTree {
 public:
  /// The node of a hypothesis without tokens.
  static constexpr std::int32_t kRoot = -1;

  /// Returns the node of the hypothesis that continues the one of the node `parent` by `token`.
  std::int32_t add(std::int32_t parent, std::int32_t token, float log_probability) {
    nodes_.push_back({parent, token, log_probability});
    return static_cast<std::int32_t>(nodes_.size()) - 1;
  }

  /// Returns the hypothesis that ends at `node`, without a score. `end` is the log-probability of </s>, or null if the
  /// hypothesis ends at the length limit. `sum` is the sum of all log-probabilities.
  Hypothesis hypothesis(std::int32_t node, double sum, const float* end) const {
    Hypothesis out;
    for (; node != kRoot; node = at(node).parent) {
      out.ids.push_back(at(node).token);
      out.log_probabilities.push_back(at(node).log_probability);
    }
    std::reverse(out.ids.begin(), out.ids.end());
    std::reverse(out.log_probabilities.begin(), out.log_probabilities.end());
    if (end) out.log_probabilities.push_back(*end);
    out.sum = sum;
    return out;
  }

 private:
  struct Node {
    std::int32_t parent, token;
    float log_probability;
  };
  const Node& at(std::int32_t node) const { return nodes_[static_cast<std::size_t>(node)]; }

  std::vector<Node> nodes_;
};

}  // namespace heed
