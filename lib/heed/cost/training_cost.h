#pragma once

#include <cstdint>
#include <vector>

#include "heed/base/threads.h"
#include "heed/cost/cost_part.h"
#include "heed/cost/model_work.h"
#include "heed/data/examples.h"
#include "heed/optim/optimizer.h"
#include "heed/train/trainer_options.h"

namespace heed {

/// The predicted cost of training: the counted operations and bytes that the config and the corpus require, times the
/// measured cost of an operation on this machine. The measurement runs the library's own kernels at the model's sizes.
struct TrainingCost {
  /// The number of target tokens in the updates whose work was counted.
  std::int64_t target_tokens = 0;
  /// The predicted wall-clock time in seconds for training on target_tokens tokens.
  double seconds = 0;
  std::vector<CostPart> parts;

  double tokens_per_second() const { return static_cast<double>(target_tokens) / seconds; }
};

/// Predicts the cost of training; the measurement takes part of a second. Where the model has no residual_norms(), the
/// time of whole updates is measured instead of the time of kernels, which takes longer for a large model. `parameters`
/// are only read. `pool` must be the pool that will train. Throws the errors of the ops.
TrainingCost training_cost(const Model<float>& model, ParameterValues<float>& parameters,
                           const OptimizerSettings& optimizer, const Examples& examples, const BatchOptions& batch,
                           Precision precision, ThreadPool& pool);

}  // namespace heed
