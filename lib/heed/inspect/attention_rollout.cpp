#include "heed/inspect/attention_rollout.h"

#include <numeric>
#include <string>

#include "heed/base/error.h"

namespace heed {

AttentionRollout::AttentionRollout(std::size_t tokens) : tokens_(tokens), weights_(tokens * tokens) {
  for (std::size_t i = 0; i < tokens_; ++i) weights_[i * tokens_ + i] = 1;
}

void AttentionRollout::add(std::span<const float> weights) {
  if (weights.size() != weights_.size())
    throw Error("attention rollout: " + std::to_string(weights.size()) + " weights for " + std::to_string(tokens_) +
                " tokens");
  std::vector<float> next(weights_.size());
  std::vector<double> row(tokens_);
  for (std::size_t i = 0; i < tokens_; ++i) {
    const std::span<const float> layer = weights.subspan(i * tokens_, tokens_);
    const double sum = std::accumulate(layer.begin(), layer.end(), 0.0) + 1;
    row.assign(tokens_, 0);
    for (std::size_t k = 0; k < tokens_; ++k) {
      const double mixed = (static_cast<double>(layer[k]) + (k == i ? 1 : 0)) / sum;
      if (mixed == 0) continue;
      const float* const before = weights_.data() + k * tokens_;
      for (std::size_t j = 0; j < tokens_; ++j) row[j] += mixed * static_cast<double>(before[j]);
    }
    for (std::size_t j = 0; j < tokens_; ++j) next[i * tokens_ + j] = static_cast<float>(row[j]);
  }
  weights_ = std::move(next);
}

}  // namespace heed
