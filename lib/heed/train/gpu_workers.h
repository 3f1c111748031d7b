#pragma once

#include <optional>

#include "heed/autograd/device_parameters.h"
#include "heed/train/gpu_sum.h"
#include "heed/train/training_workers.h"

namespace heed {

/// Trains on a GPU, or on the GPUs of several ranks. The parameters, their gradients, the optimiser's memory and the
/// moving average stay in the memory of the GPU from one update to the next; each rank has all of them. The shards of a
/// batch are shared out to the ranks, and a rank computes its shards of a batch as one, since a GPU computes all rows
/// of a product at once. The thread that created the context must call all functions.
class GpuWorkers : public TrainingWorkers {
 public:
  /// `device`, the layout, the ranks and `sum` must outlive the object. `sum` adds the ranks' gradients up; a rank that
  /// is alone needs none.
  GpuWorkers(const ParameterLayout& layout, BatchLoss loss, CudaContext& device, Communicator& ranks = no_other_ranks(),
             GpuSum* sum = nullptr)
      : layout_(layout), loss_(std::move(loss)), device_(device), ranks_(ranks), sum_(sum) {}

  std::unique_ptr<UpdateStep> make_update_step(const UpdateArrays& arrays) override;
  LossSums evaluate(ParameterValues<float>& parameters, const Examples& examples, std::span<const Shard> shards,
                    const InterruptGuard* interrupts) override;
  Communicator& ranks() override { return ranks_; }
  std::int64_t memory() const override { return static_cast<std::int64_t>(device_.host_arena.reserved()); }

 private:
  class Step;

  LossSums total(std::span<const PendingSums> batches);

  const ParameterLayout& layout_;
  BatchLoss loss_;
  CudaContext& device_;
  Communicator& ranks_;
  GpuSum* sum_;
  Batch batch_;
};

}  // namespace heed
