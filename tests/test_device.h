#pragma once

#include <memory>
#include <optional>

#include "heed/autograd/packed_parameters.h"
#include "heed/tensor/cuda_device.h"
#include "heed/tensor/device.h"

#ifndef HEED_TEST_ON_GPU
#define HEED_TEST_ON_GPU 0
#endif

namespace heed {

/// Whether tests of ops and models compute on a GPU: in the second build of these tests (tests/cuda), on an emulated
/// one or on that of the machine.
constexpr bool kTestsGpu = HEED_TEST_ON_GPU;

/// Whether tests that take long do less: on an emulated GPU, and under TSan, which watches threads and nothing else.
/// The same tests are whole in the other builds.
#ifdef __SANITIZE_THREAD__
constexpr bool kTestsBriefly = true;
#else
constexpr bool kTestsBriefly = kTestsGpu;
#endif

/// Returns the number of the GPU on which tests compute, if any.
inline std::optional<int> test_gpu() {
  return kTestsGpu ? std::optional(0) : std::nullopt;
}

/// Returns the parameters of a model as inference reads them on the device on which tests compute.
template <class T>
std::shared_ptr<PackedParameters<T>> test_parameters(ParameterValues<T>& parameters) {
  return std::make_shared<PackedParameters<T>>(parameters, test_gpu());
}

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
