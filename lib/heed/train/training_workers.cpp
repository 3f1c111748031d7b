#include "heed/train/training_workers.h"

#include <cmath>

#include "heed/base/error.h"
#include "heed/ops/optimizer_kernels.h"

namespace heed {
namespace {

std::span<const float> sums_of(const ParameterValues<float>& gradients, const ParameterInfo& info) {
  return gradients.part(slice_of_running(info, true));
}

}  // namespace

Slice slice_of_running(const ParameterInfo& info, bool count) {
  return {info.offset, info.offset + info.shape.size() + (count ? 1 : 0)};
}

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
  for (const ParameterInfo& info : parameters.layout().running())
    move_to_means<float>(parameters.part(slice_of_running(info, false)), sums_of(gradients, info), kRunningShare);
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
