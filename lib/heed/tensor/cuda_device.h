#pragma once

#include <string>

#include "heed/tensor/cuda_context.h"
#include "heed/tensor/cuda_memory.h"

namespace heed {

/// The GPUs of this machine.
struct GpuSurvey {
  int count = 0;
  std::string why_none = {};  ///< why there is none, and what to do; empty where there is one
  bool unusable = false;      ///< true where there is one that heed cannot use, with count 0
};
GpuSurvey survey_gpus();

/// Throws Error where there is no GPU number `number`, counted from 0.
void check_gpu(int number);
/// Returns whether GPU number `number`, which must exist, is new enough for the compiled kernels.
bool is_new_enough(int number);
/// Returns a message that says that a GPU is not new enough.
std::string too_old(int number);

/// Two names of a GPU: one for people, and one that tells GPUs apart.
struct GpuInfo {
  std::string name;  ///< the product name of the GPU, such as "NVIDIA H200"
  std::string id;    ///< bytes that identify the GPU among the GPUs of all machines
};
/// Describes GPU number `number`, which must exist.
GpuInfo gpu_info(int number);

/// An open GPU, with a stream and the arenas of a CudaContext. The thread that creates the object may run ops on the
/// GPU at once; another thread must call use_gpu() before it runs ops.
class CudaDevice {
 public:
  /// Opens GPU number `number`, counted from 0. Throws Error where there is no such GPU.
  CudaDevice(int number, Precision precision);
  ~CudaDevice();
  CudaDevice(const CudaDevice&) = delete;
  CudaDevice& operator=(const CudaDevice&) = delete;

  CudaContext& context() { return context_; }

 private:
  Arena arena_{kGpuMemory}, host_arena_;
  CudaContext context_;
};

}  // namespace heed
