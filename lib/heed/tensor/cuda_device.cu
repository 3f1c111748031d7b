#include "heed/tensor/cuda_device.h"

#include "heed/tensor/cuda_blas.h"
#include "heed/tensor/cuda_language.h"

namespace heed {
namespace {

/// The oldest compute capability for which the kernels are compiled.
constexpr int kOldestMajor = 8;

}  // namespace

void check_gpu(int number) {
  const GpuSurvey survey = survey_gpus();
  if (survey.count == 0) throw Error(survey.why_none);
  if (number < 0 || number >= survey.count)
    throw Error("there is no GPU cuda:" + std::to_string(number) + ": this machine has " +
                std::to_string(survey.count) + ", counted from cuda:0");
}

std::string too_old(int number) {
  return "the GPU cuda:" + std::to_string(number) + ", " + gpu_info(number).name +
         ", is too old: heed needs compute capability " + std::to_string(kOldestMajor) +
         ".0 or later (use --device cpu)";
}

#ifdef __CUDACC__

GpuSurvey survey_gpus() {
  int count = 0, driver = 0, runtime = 0;
  const cudaError_t error = cudaGetDeviceCount(&count);
  cudaGetLastError();
  if (error == cudaSuccess && count > 0) {
    const std::string why_not = load_cublas_lt();
    return {why_not.empty() ? count : 0, why_not, !why_not.empty()};
  }
  cudaDriverGetVersion(&driver);
  cudaRuntimeGetVersion(&runtime);
  const auto version = [](int number) {
    return std::to_string(number / 1000) + "." + std::to_string(number % 1000 / 10);
  };
  if (driver == 0) return {0, "no GPU here: NVIDIA's driver is not installed (use --device cpu)"};
  if (error == cudaErrorInsufficientDriver)
    return {0,
            "the driver of the GPU is too old: it knows CUDA " + version(driver) + ", heed needs " + version(runtime) +
                " (install a newer driver, or use --device cpu)",
            true};
  return {0, std::string("no GPU here (use --device cpu): ") + cudaGetErrorString(error)};
}

bool is_new_enough(int number) {
  int major = 0;
  return cudaDeviceGetAttribute(&major, cudaDevAttrComputeCapabilityMajor, number) == cudaSuccess &&
         major >= kOldestMajor;
}

GpuInfo gpu_info(int number) {
  cudaDeviceProp properties{};
  if (const cudaError_t error = cudaGetDeviceProperties(&properties, number); error != cudaSuccess)
    throw Error("the GPU cuda:" + std::to_string(number) +
                " cannot be asked for its name: " + cudaGetErrorString(error));
  return {properties.name, {properties.uuid.bytes, sizeof properties.uuid.bytes}};
}

CudaDevice::CudaDevice(int number, Precision precision) : context_{arena_, host_arena_, precision} {
  check_gpu(number);
  const auto check = [&](cudaError_t error) {
    if (error != cudaSuccess)
      throw Error("the GPU cuda:" + std::to_string(number) + " cannot be used: " + cudaGetErrorString(error));
  };
  context_.number = number;
  check(cudaSetDevice(number));
  if (!is_new_enough(number)) throw Error(too_old(number));
  check(cudaStreamCreateWithFlags(&context_.stream, cudaStreamNonBlocking));
}

CudaDevice::~CudaDevice() {
  cudaStreamSynchronize(context_.stream);
  context_.graphs.reset();
  context_.products.reset();
  context_.staging.reset();
  context_.uploads.reset();
  cudaStreamDestroy(context_.stream);
}

#else

GpuSurvey survey_gpus() {
  return {1, ""};
}

bool is_new_enough(int) {
  return true;
}

GpuInfo gpu_info(int) {
  return {"emulated GPU", "the only one"};
}

CudaDevice::CudaDevice(int number, Precision precision) : context_{arena_, host_arena_, precision} {
  check_gpu(number);
}

CudaDevice::~CudaDevice() = default;

#endif

}  // namespace heed
