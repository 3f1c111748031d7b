#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "heed/base/threads.h"
#include "heed/cost/cluster.h"
#include "heed/cost/cost_part.h"
#include "heed/cost/model_work.h"
#include "heed/data/examples.h"
#include "heed/optim/optimizer.h"
#include "heed/train/trainer_options.h"
#include "heed/train/training_workers.h"

namespace heed {

/// The predicted speed of training on several machines like this one, in target tokens a second.
struct ClusterCost {
  int nodes = 1;
  double speed = 0;               ///< with the batches that the options ask for
  double network_share = 0;       ///< the share of the time in which a machine waits for the network
  double weak_speed = 0;          ///< weak scaling: with batches that are `nodes` times as large
  double weak_network_share = 0;  ///< the share of the time in which a machine then waits for the network
  double sent_bytes = 0;          ///< bytes that a machine sends in an update
};

/// The predicted cost of training: the counted operations and bytes that the config and the corpus require, times the
/// measured cost of an operation on this machine. The measurement runs the library's own kernels at the model's sizes.
struct TrainingCost {
  /// The number of target tokens in the updates whose work was counted.
  std::int64_t target_tokens = 0;
  /// The predicted wall-clock time in seconds for training on target_tokens tokens.
  double seconds = 0;
  /// The seconds of a part are the sum over all threads that train. On a GPU they are those of the GPU.
  std::vector<CostPart> parts;
  /// The speed on 1, 2, 4, ... and all machines of TrainingWork::cluster.
  std::vector<ClusterCost> clusters;

  double tokens_per_second() const { return static_cast<double>(target_tokens) / seconds; }
};

/// A training whose cost is predicted.
struct TrainingWork {
  const Model<float>& model;
  const BatchLoss& loss;
  ParameterValues<float>& parameters;  ///< are only read
  OptimizerSettings optimizer;
  const Examples& examples;
  const BatchOptions& batch;
  Precision precision;
  ThreadPool& pool;                      ///< the pool that will train
  std::unique_ptr<TrainingWorkers> gpu;  ///< the GPU that will train; null where the pool will
  /// Machines whose speed is predicted too.
  std::optional<Cluster> cluster = {};
};

/// Predicts the cost of training on one machine; the measurement takes part of a second. On a GPU, and where the model
/// has no residual_norms(), or the training has R-Drop or teachers, the time of whole updates is measured instead of
/// the time of kernels, which takes longer for a large model; then the speed of other machines cannot be predicted,
/// which is a UsageError. Throws the errors of the ops.
TrainingCost training_cost(const TrainingWork& work);

}  // namespace heed
