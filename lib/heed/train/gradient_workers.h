#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "heed/base/threads.h"
#include "heed/train/gradient_sum.h"
#include "heed/train/training_workers.h"

namespace heed {

class PreparedWeights;

/// Returns the elements of `slice`, a range of the flat array of parameters, that are trained parameters. Running
/// averages stand at the end of the array.
Slice trained_part(const ParameterLayout& layout, const Slice& slice);

/// Computes the loss and the gradient of one update's shards (parts of its batches) on all threads. Each thread has its
/// own memory and graph. The shards form leaves: leaf i has the shards i, i + L, i + 2 L, ..., one after another, where
/// L, the number of leaves, is the largest number of shards that a batch of the update was cut into. The gradients of
/// the leaves are added up as GradientSum says, and all other sums are taken in a fixed order too, so that the result
/// does not depend on the number of threads and ranks. compute(), evaluate(), reduce() and the functions
/// that gather are collective: every rank must call them, with the same arguments. After the first updates, when the
/// memory of each thread has reached its full size, nothing is allocated from the heap.
class GradientWorkers : public TrainingWorkers {
 public:
  GradientWorkers(const ParameterLayout& layout, BatchLoss loss, Precision precision, ThreadPool& pool,
                  Communicator& ranks = no_other_ranks());
  ~GradientWorkers() override;

  std::unique_ptr<UpdateStep> make_update_step(const UpdateArrays& arrays) override;
  /// Runs the forward and the backward pass of all shards. Returns the sums (loss, number of tokens, ...) over all
  /// shards. The dropout masks of a sequence depend on `key` and on the sequence's number within the update, not on the
  /// shard.
  LossSums compute(ParameterValues<float>& parameters, const Examples& examples, std::span<const Shard> shards,
                   const LossOptions& options, const DropoutKey& key);
  LossSums evaluate(ParameterValues<float>& parameters, const Examples& examples, std::span<const Shard> shards,
                    const InterruptGuard* interrupts) override;

  /// Adds up the gradients of all leaves, and stores the sum in gradient(). Afterwards, each rank has its own slice of
  /// the sum, and all elements of the sums for running averages. Returns the Euclidean norm of the whole gradient,
  /// without the sums for running averages. The norm is infinite or NaN if an element of the gradient is infinite or
  /// NaN.
  double reduce();
  /// Returns the sum of all leaves' gradients. Valid after reduce().
  ParameterValues<float>& gradient() { return sum_.result(); }
  /// Sets the elements in the index range `slice` of gradient() to zero. Before the next compute(), the caller must
  /// clear slices that cover slice() and the sums for running averages.
  void clear(const Slice& slice) { sum_.clear(slice); }

  Communicator& ranks() override { return ranks_; }
  /// Returns the slice of the flat arrays whose gradient this rank adds up, and whose parameters it updates.
  const Slice& slice() const { return slice_; }
  /// Completes `values` on all ranks: each rank sends its slice to the other ranks.
  void gather(ParameterValues<float>& values);
  /// Completes `values` on rank 0: each other rank sends its slice to rank 0.
  void gather_to_first(ParameterValues<float>& values);

  std::int64_t memory() const override;

 private:
  struct Worker;
  LossSums total(const std::vector<Slice>& parts);
  void gather_region(ParameterValues<float>& values, const Slice& region);

  BatchLoss loss_;
  ThreadPool& pool_;
  Communicator& ranks_;
  const ParameterLayout& layout_;
  std::unique_ptr<PreparedWeights> weights_;
  std::vector<std::unique_ptr<Worker>> workers_;
  GradientSum sum_;
  Slice slice_;
  // The parts of an array that the ranks have, in the present call of a function.
  std::vector<Slice> parts_;
  // The sums (loss, number of tokens, ...) of each shard in the present call of compute() or evaluate(). In compute(),
  // the shards of leaf 0 are the first, then those of leaf 1, and so on.
  std::vector<LossSums> sums_;
  // The squared norm of each block of the gradient, from which reduce() computes the norm.
  std::vector<double> squared_norms_;
};

}  // namespace heed
