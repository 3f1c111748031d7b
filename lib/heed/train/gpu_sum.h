#pragma once

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "heed/base/log.h"
#include "heed/dist/communicator.h"
#include "heed/dist/nccl.h"
#include "heed/tensor/cuda_context.h"

namespace heed {

/// Adds up arrays in the memory of the GPUs of several ranks. The sums have the same bits on all ranks, and in every
/// run on as many ranks of the same machines.
class GpuSum {
 public:
  virtual ~GpuSum() = default;
  /// Replaces each number by the sum of the numbers at its place on all ranks. Collective; all ranks must have as many
  /// numbers.
  virtual void add_up(CudaContext& gpu, std::span<float> numbers) = 0;
  /// Returns the name of the method that adds the arrays up, such as "NCCL 2.28.9" or "the hosts".
  virtual std::string name() const = 0;
};

/// Sums by NCCL, for ranks of which each has a GPU of its own. GPUs exchange numbers at the speed of their connection.
class NcclSum : public GpuSum {
 public:
  /// Collective.
  NcclSum(const NcclLibrary& library, Communicator& ranks) : group_(library, ranks) {}

  void add_up(CudaContext& gpu, std::span<float> numbers) override { group_.add_up(numbers, gpu.stream); }
  std::string name() const override { return group_.name(); }

 private:
  NcclGroup group_;
};

/// Sums by the hosts, in the order of the ranks: for ranks that share a GPU, and where there is no NCCL. All numbers
/// are copied to the hosts and back.
class HostSum : public GpuSum {
 public:
  explicit HostSum(Communicator& ranks) : ranks_(ranks) {}

  void add_up(CudaContext& gpu, std::span<float> numbers) override;
  std::string name() const override { return "the hosts"; }

 private:
  Communicator& ranks_;
  // All numbers of this rank; the other ranks' numbers for the slice that this rank adds up; the sums of this slice.
  std::vector<float> own_, others_, sums_;
};

/// Returns the sum of ranks with GPUs: by NCCL where each has a GPU of its own and NCCL can be loaded, and otherwise by
/// the hosts. Collective. `id` names the GPU of this rank, which must be the current one, among those of all ranks.
/// Warns where NCCL is missing.
std::unique_ptr<GpuSum> make_gpu_sum(Communicator& ranks, const std::string& id, Log& log);

}  // namespace heed
