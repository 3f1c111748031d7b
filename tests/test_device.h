#pragma once

#include "heed/tensor/device.h"

namespace heed {

/// The device on which tests of ops and models compute: a CPU or, in the second build of these tests (tests/cuda), an
/// emulated GPU.
class TestDevice {
 public:
  operator Device() { return context_; }

 private:
#if HEED_HAS_CUDA
  Arena arena_{kGpuMemory}, host_arena_;
  CudaContext context_{arena_, host_arena_};
#else
  Arena arena_;
  CpuContext context_{arena_};
#endif
};

}  // namespace heed
