#pragma once

#include <memory>
#include <optional>

#include "heed/tensor/cuda_device.h"
#include "heed/tensor/device.h"

namespace heed {

/// A device, the CPU or a GPU, that owns its arenas. Different threads may use the same OwnedDevice one after another,
/// but not at the same time. A thread must call Device::begin() before it computes on the device.
class OwnedDevice {
 public:
  /// Opens GPU number `gpu`, or the CPU if `gpu` has no value. Throws Error if the machine has no such GPU, or if heed
  /// was built without kernels of GPUs.
  OwnedDevice(std::optional<int> gpu, Precision precision) : cpu_{arena_, precision} {
#if HEED_HAS_CUDA
    if (gpu) gpu_ = std::make_shared<CudaDevice>(*gpu, precision);
#else
    if (gpu) throw Error("internal: this heed was built without kernels of GPUs");
#endif
  }
  OwnedDevice(const OwnedDevice&) = delete;
  OwnedDevice& operator=(const OwnedDevice&) = delete;

  operator Device() {
#if HEED_HAS_CUDA
    if (gpu_) return gpu_->context();
#endif
    return cpu_;
  }
  /// Lets the threads of `team` share matrix products of inference on a CPU (see CpuContext).
  void share_with(ThreadTeam* team) {
    cpu_.team = team;
  }

 private:
  Arena arena_;
  CpuContext cpu_;
  std::shared_ptr<CudaDevice> gpu_;  // shared only so that a build without kernels of GPUs needs no destructor
};

}  // namespace heed
