#pragma once

#include <vector>

#include "heed/optim/optimizer.h"
#include "heed/train/gradient_workers.h"

namespace heed {

/// Computes one update: the gradient of several batches, divided by the number of their target tokens; clipping; the
/// optimiser's update of the parameters; and the moving average of the parameters. An update whose loss or gradient is
/// not finite changes no parameter.
class UpdateStep {
 public:
  /// All references must outlive the UpdateStep. `smoothed`, the moving average, is null without
  /// --exponential-smoothing.
  UpdateStep(GradientWorkers& workers, const Optimizer& optimizer, ParameterValues<float>& parameters,
             ParameterValues<float>* smoothed, double smoothing_rate, ThreadPool& pool)
      : workers_(workers),
        optimizer_(optimizer),
        parameters_(parameters),
        smoothed_(smoothed),
        smoothing_rate_(smoothing_rate),
        pool_(pool) {}

  struct Result {
    CrossEntropySums sums;
    double gradient_norm = 0;  ///< norm of the gradient before clipping
    bool applied = false;      ///< false when the loss or the gradient is not finite
  };
  /// `step` is the number of this update, counting applied updates only, from 1; the optimiser uses it. Throws Error
  /// when the shards have no target tokens.
  Result run(const ParallelCorpus& corpus, std::span<const Shard> shards, double label_smoothing,
             const DropoutKey& dropout, std::int64_t step, double learning_rate);

 private:
  GradientWorkers& workers_;
  const Optimizer& optimizer_;
  ParameterValues<float>& parameters_;
  ParameterValues<float>* smoothed_;
  double smoothing_rate_;
  ThreadPool& pool_;
};

}  // namespace heed
