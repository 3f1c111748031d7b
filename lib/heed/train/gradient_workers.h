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

/// What training needs of a model: the scaled loss of a batch, and its sums. Called by many threads at once.
using BatchLoss =
    std::function<Variable<float>(Graph<float>&, const Batch&, const CrossEntropyOptions&, CrossEntropySums*)>;

/// Computes loss and gradient of an update's shards on all threads. Each thread has its own memory, graph and gradient;
/// shard i belongs to thread i mod threads. All sums are taken in a fixed order: the result is the same in every run
/// with as many threads. Nothing is taken from the heap once the memory has grown to its size.
class GradientWorkers {
 public:
  GradientWorkers(const ParameterLayout& layout, BatchLoss loss, Precision precision, ThreadPool& pool);
  ~GradientWorkers();

  /// Adds the shards' gradients to the threads' own ones. `key.shard` is ignored.
  CrossEntropySums compute(ParameterValues<float>& parameters, const ParallelCorpus& corpus,
                           std::span<const Shard> shards, const CrossEntropyOptions& options, const DropoutKey& key);
  /// The loss without gradients and dropout.
  CrossEntropySums evaluate(ParameterValues<float>& parameters, const ParallelCorpus& corpus,
                            std::span<const Shard> shards);

  /// Sums the threads' gradients into gradient(); returns its norm, not finite where an element is not.
  double reduce();
  /// The sum, after reduce().
  ParameterValues<float>& gradient();
  /// Sets a slice of all gradients to zero; to be called for all slices before the next compute().
  void clear(const Slice& slice);

  /// Bytes of gradients and of the memory for a step.
  std::int64_t memory() const;

 private:
  struct Worker;
  template <class Work>
  CrossEntropySums for_each_shard(std::span<const Shard> shards, Work work);

  BatchLoss loss_;
  ThreadPool& pool_;
  std::vector<std::unique_ptr<Worker>> workers_;
  std::vector<CrossEntropySums> sums_;  // of each shard
  std::vector<double> squared_norms_;   // of each slice
};

}  // namespace heed
