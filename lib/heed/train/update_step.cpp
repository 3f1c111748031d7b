#include "heed/train/update_step.h"

#include <cmath>

#include "heed/ops/optimizer_kernels.h"

namespace heed {

void CpuUpdateStep::submit(const Examples& examples, std::span<const Shard> shards, LossOptions loss,
                           const DropoutKey& dropout, std::int64_t step, double learning_rate) {
  const Optimizer& optimizer = arrays_.optimizer;
  ParameterValues<float>& parameters = arrays_.parameters;
  Result result;
  loss.scale = 1 / static_cast<double>(target_tokens_of(shards));
  result.sums = workers_.compute(parameters, examples, shards, loss, dropout);
  result.gradient_norm = workers_.reduce();
  result.applied = is_finite(result, workers_.gradient());

  const double scale = clipping_factor(result.gradient_norm, optimizer.settings().clip_norm);
  const ParameterLayout& layout = parameters.layout();
  const Slice own = workers_.slice();
  if (result.applied) move_running_averages(parameters, workers_.gradient());
  pool_.run([&](int thread) {
    const Slice part_of_own = slice_of(own.size(), pool_.size(), thread);
    const Slice slice{own.begin + part_of_own.begin, own.begin + part_of_own.end};
    if (result.applied) {
      optimizer.update(parameters, workers_.gradient(), trained_part(layout, slice),
                       {.learning_rate = learning_rate, .number = step, .gradient_scale = scale});
      if (arrays_.smoothed)
        move_average<float>(arrays_.smoothed->part(slice), parameters.part(slice),
                            smoothing_decay(arrays_.smoothing_rate, step));
    }
    workers_.clear(slice);
  });
  workers_.clear({layout.trained_size(), layout.storage_size()});
  if (result.applied) workers_.gather(parameters);
  result_ = result;
}

/// Completes the moving average of the parameters, of which each rank computes its slice. The parameters are complete.
void CpuUpdateStep::gather_parameters() {
  if (arrays_.smoothed) workers_.gather(*arrays_.smoothed);
}

void CpuUpdateStep::gather_memory() {
  for (auto& [name, values] : arrays_.memory) workers_.gather_to_first(values);
}

void CpuUpdateStep::take_over() {
  if (workers_.ranks().size() == 1) return;
  for (auto& [name, values] : arrays_.memory)
    if (&values != &arrays_.parameters) values.keep_only(workers_.slice());
}

}  // namespace heed
