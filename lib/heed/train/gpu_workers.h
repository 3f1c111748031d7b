#pragma once

#include <optional>

#include "heed/autograd/device_parameters.h"
#include "heed/train/training_workers.h"

namespace heed {

/// Trains on a GPU. The parameters, their gradients, the optimiser's memory and the moving average stay in the memory
/// of the GPU from one update to the next. The shards of a batch are computed as one, since a GPU computes all rows of
/// a product at once. The thread that created the context must call all functions.
class GpuWorkers : public TrainingWorkers {
 public:
  /// `device` and the layout must outlive the object.
  GpuWorkers(const ParameterLayout& layout, BatchLoss loss, CudaContext& device)
      : layout_(layout), loss_(std::move(loss)), device_(device) {}

  std::unique_ptr<UpdateStep> make_update_step(const UpdateArrays& arrays) override;
  LossSums evaluate(ParameterValues<float>& parameters, const Examples& examples,
                    std::span<const Shard> shards) override;
  Communicator& ranks() override { return no_other_ranks(); }
  std::int64_t memory() const override { return static_cast<std::int64_t>(device_.host_arena.reserved()); }

 private:
  class Step;

  const ParameterLayout& layout_;
  BatchLoss loss_;
  CudaContext& device_;
  Batch batch_;
};

}  // namespace heed
