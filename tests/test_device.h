#pragma once

#include "heed/tensor/cuda_device.h"
#include "heed/tensor/device.h"

#ifndef HEED_TEST_ON_GPU
#define HEED_TEST_ON_GPU 0
#endif

namespace heed {

/// Whether tests of ops and models compute on a GPU: in the second build of these tests (tests/cuda), on an emulated
/// one or on that of the machine.
constexpr bool kTestsGpu = HEED_TEST_ON_GPU;

/// The device on which tests of ops and models compute.
class TestDevice {
 public:
#if HEED_TEST_ON_GPU
  operator Device() {
    return gpu_.context();
  }

 private:
  CudaDevice gpu_{0, Precision::float32};
#else
  operator Device() {
    return context_;
  }

 private:
  Arena arena_;
  CpuContext context_{arena_};
#endif
};

}  // namespace heed
