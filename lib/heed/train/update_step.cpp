#include "heed/train/update_step.h"

#include <cmath>

#include "heed/base/error.h"
#include "heed/ops/optimizer_kernels.h"

namespace heed {

UpdateStep::Result UpdateStep::run(const Examples& examples, std::span<const Shard> shards, double label_smoothing,
                                   const DropoutKey& dropout, std::int64_t step, double learning_rate) {
  std::int64_t tokens = 0;
  for (const Shard& shard : shards) tokens += shard.target_tokens;
  if (tokens <= 0) throw Error("internal: an update without target tokens");
  Result result;
  result.sums =
      workers_.compute(parameters_, examples, shards,
                       {.label_smoothing = label_smoothing, .scale = 1 / static_cast<double>(tokens)}, dropout);
  result.gradient_norm = workers_.reduce();
  // The negative log-likelihood must be finite too, because it goes into the loss history.
  result.applied = std::isfinite(result.sums.loss) && std::isfinite(result.sums.negative_log_likelihood) &&
                   std::isfinite(result.gradient_norm);

  const double limit = optimizer_.settings().clip_norm;
  const double scale = limit > 0 && result.gradient_norm > limit ? limit / result.gradient_norm : 1;
  const std::int64_t size = parameters_.layout().storage_size();
  pool_.run([&](int thread) {
    const Slice slice = slice_of(size, pool_.size(), thread);
    if (result.applied) {
      optimizer_.update(parameters_, workers_.gradient(), slice,
                        {.learning_rate = learning_rate, .number = step, .gradient_scale = scale});
      const auto part = [&](ParameterValues<float>& values) {
        return values.flat().subspan(static_cast<std::size_t>(slice.begin), static_cast<std::size_t>(slice.size()));
      };
      if (smoothed_) move_average<float>(part(*smoothed_), part(parameters_), smoothing_decay(smoothing_rate_, step));
    }
    workers_.clear(slice);
  });
  return result;
}

}  // namespace heed
