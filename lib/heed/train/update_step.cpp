#include "heed/train/update_step.h"

#include <cmath>

#include "heed/base/error.h"
#include "heed/ops/optimizer_kernels.h"

namespace heed {

namespace {

/// The weight of an update's statistics in a running average, as in PyTorch's BatchNorm1d.
constexpr double kRunningShare = 0.1;

/// Returns the elements of a flat array in which the gradients hold the sums for the running average `info`, and behind
/// them the number of tokens.
std::span<const float> sums_of(const ParameterValues<float>& gradients, const ParameterInfo& info) {
  return gradients.part({info.offset, info.offset + info.shape.size() + 1});
}

bool finite_sums(const ParameterValues<float>& gradients) {
  for (const ParameterInfo& info : gradients.layout().running())
    for (const float sum : sums_of(gradients, info))
      if (!std::isfinite(sum)) return false;
  return true;
}

/// Moves the running averages towards the means of this update, from the sums over its shards.
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

}  // namespace

UpdateStep::Result UpdateStep::run(const Examples& examples, std::span<const Shard> shards, LossOptions loss,
                                   const DropoutKey& dropout, std::int64_t step, double learning_rate) {
  std::int64_t tokens = 0;
  for (const Shard& shard : shards) tokens += shard.target_tokens;
  if (tokens <= 0) throw Error("internal: an update without target tokens");
  Result result;
  loss.scale = 1 / static_cast<double>(tokens);
  result.sums = workers_.compute(parameters_, examples, shards, loss, dropout);
  result.gradient_norm = workers_.reduce();
  // The negative log-likelihood must be finite too, because it goes into the loss history.
  result.applied = std::isfinite(result.sums.loss) && std::isfinite(result.sums.negative_log_likelihood) &&
                   std::isfinite(result.gradient_norm) && finite_sums(workers_.gradient());

  const double limit = optimizer_.settings().clip_norm;
  const double scale = limit > 0 && result.gradient_norm > limit ? limit / result.gradient_norm : 1;
  const ParameterLayout& layout = parameters_.layout();
  const Slice own = workers_.slice();
  if (result.applied) move_running_averages(parameters_, workers_.gradient());
  pool_.run([&](int thread) {
    const Slice part_of_own = slice_of(own.size(), pool_.size(), thread);
    const Slice slice{own.begin + part_of_own.begin, own.begin + part_of_own.end};
    if (result.applied) {
      optimizer_.update(parameters_, workers_.gradient(), trained_part(layout, slice),
                        {.learning_rate = learning_rate, .number = step, .gradient_scale = scale});
      if (smoothed_)
        move_average<float>(smoothed_->part(slice), parameters_.part(slice), smoothing_decay(smoothing_rate_, step));
    }
    workers_.clear(slice);
  });
  workers_.clear({layout.trained_size(), layout.storage_size()});
  if (result.applied) workers_.gather(parameters_);
  return result;
}

}  // namespace heed
