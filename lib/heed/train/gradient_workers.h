#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "heed/autograd/graph.h"
#include "heed/base/threads.h"
#include "heed/data/batches.h"
#include "heed/model/batch.h"
#include "heed/ops/cross_entropy.h"

namespace heed {

/// A function that computes the scaled loss of a batch on a graph and adds the batch's sums (loss, tokens, ...) to the
/// CrossEntropySums. GradientWorkers calls the function from many threads at once.
using BatchLoss =
    std::function<Variable<float>(Graph<float>&, const Batch&, const CrossEntropyOptions&, CrossEntropySums*)>;

/// Computes the loss and the gradient of one update's shards (parts of a batch) on all threads. Each thread has its own
/// memory, graph and gradient array; shard i is computed by thread i mod (number of threads). All sums are taken in a
/// fixed order, so that every run with the same number of threads gives the same result. After the first updates, when
/// the memory of each thread has reached its full size, nothing is allocated from the heap.
class GradientWorkers {
 public:
  GradientWorkers(const ParameterLayout& layout, BatchLoss loss, Precision precision, ThreadPool& pool);
  ~GradientWorkers();

  /// Runs the forward and the backward pass of all shards. Adds each shard's gradient to the gradient array of the
  /// shard's thread. Returns the sums of all shards. Shard i draws dropout with shard number i; `key.shard` is ignored.
  CrossEntropySums compute(ParameterValues<float>& parameters, const ParallelCorpus& corpus,
                           std::span<const Shard> shards, const CrossEntropyOptions& options, const DropoutKey& key);
  /// Returns the sums of the loss of all shards. Computes no gradients; applies neither dropout nor label smoothing.
  CrossEntropySums evaluate(ParameterValues<float>& parameters, const ParallelCorpus& corpus,
                            std::span<const Shard> shards);

  /// Adds the gradient arrays of all threads up into gradient(). Returns the Euclidean norm of gradient(), which is
  /// infinite or NaN when an element of the gradient is.
  double reduce();
  /// Returns the sum of all threads' gradients. Valid after reduce().
  ParameterValues<float>& gradient();
  /// Sets the elements of `slice` to zero in the gradient arrays of all threads. The caller clears all slices before
  /// the next compute().
  void clear(const Slice& slice);

  /// Returns how many bytes the gradient arrays and the arenas of all threads occupy.
  std::int64_t memory() const;

 private:
  struct Worker;
  template <class Work>
  CrossEntropySums for_each_shard(std::span<const Shard> shards, Work work);

  BatchLoss loss_;
  ThreadPool& pool_;
  std::vector<std::unique_ptr<Worker>> workers_;
  std::vector<CrossEntropySums> sums_;  // one for each shard of the present call
  std::vector<double> squared_norms_;   // one for each thread's slice of the gradient
};

}  // namespace heed
