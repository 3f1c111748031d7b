#include "heed/train/training_workers.h"

#include <cmath>

#include "heed/base/error.h"

namespace heed {
namespace {

/// The weight of an update's statistics in a running average, as in PyTorch's BatchNorm1d.
constexpr double kRunningShare = 0.1;

/// Returns the elements of a flat array in which the gradients hold the sums for the running average `info`, and behind
/// them the number of tokens.
std::span<const float> sums_of(const ParameterValues<float>& gradients, const ParameterInfo& info) {
  return gradients.part({info.offset, info.offset + info.shape.size() + 1});
}

}  // namespace

bool is_finite(const UpdateStep::Result& result, const ParameterValues<float>& gradients) {
  if (!std::isfinite(result.sums.loss) || !std::isfinite(result.sums.negative_log_likelihood) ||
      !std::isfinite(result.gradient_norm))
    return false;
  for (const ParameterInfo& info : gradients.layout().running())
    for (const float sum : sums_of(gradients, info))
      if (!std::isfinite(sum)) return false;
  return true;
}

void move_running_averages(ParameterValues<float>& parameters, const ParameterValues<float>& gradients) {
  for (const ParameterInfo& info : parameters.layout().running()) {
    const std::span<const float> sums = sums_of(gradients, info);
    const double tokens = sums.back();
    if (tokens <= 0) continue;
    float* const value = parameters.flat().data() + info.offset;
    for (std::size_t i = 0; i + 1 < sums.size(); ++i)
      value[i] = static_cast<float>((1 - kRunningShare) * value[i] + kRunningShare * (sums[i] / tokens));
  }
}

BatchLoss loss_of(const Model<float>& model) {
  return [&model](Graph<float>& graph, const Batch& batch, const LossOptions& options, PendingSums* sums) {
    return model.loss(graph, batch, options, sums);
  };
}

std::int64_t target_tokens_of(std::span<const Shard> shards) {
  std::int64_t tokens = 0;
  for (const Shard& shard : shards) tokens += shard.target_tokens;
  if (tokens <= 0) throw Error("internal: an update without target tokens");
  return tokens;
}

}  // namespace heed
