#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>

#include "heed/autograd/graph.h"
#include "heed/base/signals.h"
#include "heed/data/batches.h"
#include "heed/dist/communicator.h"
#include "heed/model/model.h"
#include "heed/optim/optimizer.h"

namespace heed {

/// A function that computes the loss of a batch, multiplied by LossOptions::scale, on an autograd graph. The
/// function writes the sums over the batch (loss, number of tokens, ...) to the PendingSums. TrainingWorkers may call
/// the function from many threads at once.
using BatchLoss = std::function<Variable<float>(Graph<float>&, const Batch&, const LossOptions&, PendingSums*)>;

/// Returns the loss of a model, which must outlive the function.
BatchLoss loss_of(const Model<float>& model);

/// The arrays that updates change, in the memory of the host, with the optimiser and the rate of the moving average.
/// The caller owns all of them.
struct UpdateArrays {
  const Optimizer& optimizer;
  NamedParameterValues& memory;  ///< of the optimiser; may also hold `parameters`
  ParameterValues<float>& parameters;
  ParameterValues<float>* smoothed = nullptr;  ///< the moving average of the parameters; null where nobody wants it
  double smoothing_rate = 0;
};

/// Computes updates: the gradient of several batches, divided by the number of their target tokens; clipping; the
/// optimiser's update of the parameters; the running averages of batch normalisation, which move by a tenth towards the
/// update's statistics; and the moving average of the parameters. An update whose loss or gradient is not finite
/// changes no parameter.
///
/// An update is submitted, and its result is collected later, so that a GPU has work while the host reads results and
/// prepares the next batch. Updates are computed and collected in the order in which they were submitted.
///
/// Between updates, the arrays in the memory of the host may be incomplete: they may lack the slices that other ranks
/// have computed, and the results in the memory of a GPU. gather_parameters() and gather_memory() complete them.
class UpdateStep {
 public:
  virtual ~UpdateStep() = default;

  struct Result {
    LossSums sums;
    /// The Euclidean norm of the gradient before clipping.
    double gradient_norm = 0;
    /// Whether the update changed the parameters; false when the loss or the gradient is not finite.
    bool applied = false;
  };
  /// Submits one update. Reads the examples of `shards` before it returns. `loss` selects the loss; loss.scale is
  /// ignored, because the scale is 1 divided by the number of target tokens. `step` is the number of this update for
  /// the optimiser, from 1: an update that changed no parameter is not counted, and an update whose result is not known
  /// yet is counted. Throws Error if the shards have no target tokens.
  virtual void submit(const Examples& examples, std::span<const Shard> shards, LossOptions loss,
                      const DropoutKey& dropout, std::int64_t step, double learning_rate) = 0;
  /// Returns the result of the earliest update that was submitted and not yet collected. If that update was not
  /// applied, all updates that were submitted after it are given up: they change no parameter and have no result, and
  /// the caller may submit them again.
  virtual Result collect() = 0;
  /// Returns how many updates may be submitted before the first of them is collected.
  virtual int most_submitted() const = 0;
  /// Computes one update (see submit()) while no other is submitted.
  Result run(const Examples& examples, std::span<const Shard> shards, const LossOptions& loss,
             const DropoutKey& dropout, std::int64_t step, double learning_rate) {
    submit(examples, shards, loss, dropout, step, learning_rate);
    return collect();
  }

  // For the following functions, all updates that were submitted must have been collected.

  /// Completes the parameters and their moving average.
  virtual void gather_parameters() = 0;
  /// Completes the optimiser's memory, on the first rank.
  virtual void gather_memory() = 0;
  /// Must be called after gather_memory(), and after the caller has changed any of the arrays: the next updates use the
  /// present contents of the arrays, and slices that gather_memory() received from other ranks are dropped.
  virtual void take_over() = 0;
};

/// What a training computes on: the threads of all ranks, or a GPU. All functions are collective: every rank must call
/// them, with the same arguments.
class TrainingWorkers {
 public:
  virtual ~TrainingWorkers() = default;

  /// Returns an object that computes updates of these arrays. The workers and the arrays must outlive it.
  virtual std::unique_ptr<UpdateStep> make_update_step(const UpdateArrays& arrays) = 0;
  /// Returns the sums (loss, number of tokens, ...) over all shards. Computes no gradients; applies neither dropout nor
  /// label smoothing. If `interrupts` is not null and has caught a signal on a rank, the sums may lack shards of this
  /// rank.
  virtual LossSums evaluate(ParameterValues<float>& parameters, const Examples& examples, std::span<const Shard> shards,
                            const InterruptGuard* interrupts) = 0;
  virtual Communicator& ranks() = 0;
  /// Returns how many bytes of the host's memory the workers occupy.
  virtual std::int64_t memory() const = 0;
};

/// Returns the number of target tokens of all shards. Throws Error where there are none.
std::int64_t target_tokens_of(std::span<const Shard> shards);

/// The weight of an update's statistics in a running average, as in PyTorch's BatchNorm1d.
inline constexpr double kRunningShare = 0.1;
/// Returns the slice of the running average `info` in a flat array. Without `count`, this is the slice of the average
/// in the array of the parameters. With `count`, the slice has one more element and is for the array of the gradients,
/// in which the sums over the shards are followed by the number of tokens.
Slice slice_of_running(const ParameterInfo& info, bool count);
/// Moves the running averages towards the means of an update, from the sums over its shards that `gradients` holds.
void move_running_averages(ParameterValues<float>& parameters, const ParameterValues<float>& gradients);
/// Tells whether an update may be applied: whether its loss, its gradient's norm and the sums for running averages that
/// `gradients` holds are finite, and the negative log-likelihood, because it goes into the loss history.
bool is_finite(const UpdateStep::Result& result, const ParameterValues<float>& gradients);

/// Returns the factor of the gradient that brings its norm down to `limit`, if that is above 0.
inline double clipping_factor(double norm, double limit) {
  return limit > 0 && norm > limit ? limit / norm : 1;
}

}  // namespace heed
