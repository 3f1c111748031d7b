#pragma once

#include "heed/train/gradient_workers.h"

namespace heed {

/// Computes updates on the threads of all ranks. Each rank updates its own slice of the parameters, and then receives
/// the slices of the other ranks. A rank holds only its own slice of the moving average and of the optimiser's memory.
class CpuUpdateStep : public UpdateStep {
 public:
  /// Everything that is passed by reference must outlive the object.
  CpuUpdateStep(GradientWorkers& workers, const UpdateArrays& arrays, ThreadPool& pool)
      : workers_(workers), arrays_(arrays), pool_(pool) {}

  /// Computes the update.
  void submit(const Examples& examples, std::span<const Shard> shards, LossOptions loss, const DropoutKey& dropout,
              std::int64_t step, double learning_rate) override;
  Result collect() override { return result_; }
  int most_submitted() const override { return 1; }
  void gather_parameters() override;
  void gather_memory() override;
  void take_over() override;

 private:
  GradientWorkers& workers_;
  UpdateArrays arrays_;
  ThreadPool& pool_;
  Result result_;  // of the last update
};

}  // namespace heed
