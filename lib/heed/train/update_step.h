#pragma once

#include <vector>

#include "heed/optim/optimizer.h"
#include "heed/train/gradient_workers.h"

namespace heed {

/// Computes one update: the gradient of several batches, divided by the number of their target tokens; clipping; the
/// optimiser's update of the parameters; the running averages of batch normalisation, which move by a tenth towards the
/// update's statistics; and the moving average of the parameters. Each rank updates its slice of the parameters, and
/// then receives those of the other ranks; of the moving average and of the optimiser's memory it has its slice only.
/// An update whose loss or gradient is not finite changes no parameter.
class UpdateStep {
 public:
  /// Everything that is passed by reference or pointer must outlive the UpdateStep. `smoothed`, the moving average of
  /// the parameters, is null without --exponential-smoothing.
  UpdateStep(GradientWorkers& workers, const Optimizer& optimizer, ParameterValues<float>& parameters,
             ParameterValues<float>* smoothed, double smoothing_rate, ThreadPool& pool)
      : workers_(workers),
        optimizer_(optimizer),
        parameters_(parameters),
        smoothed_(smoothed),
        smoothing_rate_(smoothing_rate),
        pool_(pool) {}

  struct Result {
    LossSums sums;
    /// The Euclidean norm of the gradient before clipping.
    double gradient_norm = 0;
    /// Whether the update changed the parameters; false when the loss or the gradient is not finite.
    bool applied = false;
  };
  /// Computes one update from the sentence pairs in `shards`; `loss` says which loss, of which the scale is not read:
  /// it is 1 divided by the number of target tokens. `step` is the number of this update for the optimiser, from 1;
  /// updates that changed no parameter are not counted. Throws Error when the shards have no target tokens.
  Result run(const Examples& examples, std::span<const Shard> shards, LossOptions loss, const DropoutKey& dropout,
             std::int64_t step, double learning_rate);

 private:
  GradientWorkers& workers_;
  const Optimizer& optimizer_;
  ParameterValues<float>& parameters_;
  ParameterValues<float>* smoothed_;
  double smoothing_rate_;
  ThreadPool& pool_;
};

}  // namespace heed
