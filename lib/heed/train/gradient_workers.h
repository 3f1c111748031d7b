#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "heed/autograd/graph.h"
#include "heed/base/threads.h"
#include "heed/data/batches.h"
#include "heed/model/model.h"

namespace heed {

/// A function that computes the loss of a batch, multiplied by LossOptions::scale, on an autograd graph. The
/// function adds the sums over the batch (loss, number of tokens, ...) to the LossSums. GradientWorkers calls
/// the function from many threads at once.
using BatchLoss = std::function<Variable<float>(Graph<float>&, const Batch&, const LossOptions&, LossSums*)>;

/// Returns the part of `slice`, a range of the flat array of parameters, before the running averages.
Slice trained_part(const ParameterLayout& layout, const Slice& slice);

/// Computes the loss and the gradient of one update's shards (parts of a batch) on all threads. Each thread has its own
/// memory, graph and gradient array; shard i is computed by thread i mod (number of threads). All sums are taken in a
/// fixed order, so that every run with the same number of threads gives the same result. After the first updates, when
/// the memory of each thread has reached its full size, nothing is allocated from the heap.
class GradientWorkers {
 public:
  GradientWorkers(const ParameterLayout& layout, BatchLoss loss, Precision precision, ThreadPool& pool);
  ~GradientWorkers();

  /// Runs the forward and the backward pass of all shards. Adds the gradient of each shard to the gradient array of the
  /// thread that computes the shard. Returns the sums (loss, number of tokens, ...) over all shards. Shard i draws its
  /// dropout masks with DropoutKey::shard = i; `key.shard` is ignored.
  LossSums compute(ParameterValues<float>& parameters, const Examples& examples, std::span<const Shard> shards,
                   const LossOptions& options, const DropoutKey& key);
  /// Returns the sums (loss, number of tokens, ...) over all shards. Computes no gradients; applies neither dropout nor
  /// label smoothing.
  LossSums evaluate(ParameterValues<float>& parameters, const Examples& examples, std::span<const Shard> shards);

  /// Adds the gradient arrays of all threads up into gradient(). Returns the Euclidean norm of gradient() without the
  /// sums for running averages. The norm is infinite or NaN when an element of the gradient is infinite or NaN.
  double reduce();
  /// Returns the sum of all threads' gradients. Valid after reduce().
  ParameterValues<float>& gradient();
  /// Sets the elements in the index range `slice` to zero in the gradient arrays of all threads. Before the next
  /// compute(), the caller must clear slices that cover all elements.
  void clear(const Slice& slice);

  /// Returns how many bytes the gradient arrays and the arenas of all threads occupy.
  std::int64_t memory() const;

 private:
  struct Worker;
  template <class Work>
  LossSums for_each_shard(std::span<const Shard> shards, Work work);

  BatchLoss loss_;
  ThreadPool& pool_;
  std::vector<std::unique_ptr<Worker>> workers_;
  // The sums (loss, number of tokens, ...) of each shard in the present call of compute() or evaluate().
  std::vector<LossSums> sums_;
  // The squared norm of each thread's slice of the gradient, from which reduce() computes the norm.
  std::vector<double> squared_norms_;
};

}  // namespace heed
