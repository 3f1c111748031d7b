#pragma once

#include <vector>

#include "heed/optim/optimizer.h"
#include "heed/train/gradient_workers.h"

namespace heed {

/// One optimiser update: the gradient of a list of batches, normalised by their target tokens, clipped, applied, and
/// averaged in. An update whose loss or gradient is not finite changes nothing.
class UpdateStep {
 public:
  /// All references must outlive the step. `smoothed` may be null.
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
    double gradient_norm = 0;  ///< before clipping
    bool applied = false;      ///< false: loss or gradient not finite
  };
  /// `step` is the number of this update among those applied, from 1. The shards must have target tokens, else Error.
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
