#include "heed/run/device_choice.h"

#include <charconv>
#include <string_view>

#include "heed/base/error.h"
#include "heed/tensor/cuda_device.h"
#include "heed/tensor/device.h"

namespace heed {
namespace {

constexpr std::string_view kCuda = "cuda:";

int gpu_number(std::string_view device) {
  int number = -1;
  if (device.starts_with(kCuda)) {
    const std::string_view digits = device.substr(kCuda.size());
    const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), number);
    if (error != std::errc() || end != digits.data() + digits.size()) number = -1;
  }
  if (number < 0)
    throw UsageError("--device: '" + std::string(device) + "' is none of auto, cpu and cuda:N (such as cuda:0)");
  return number;
}

}  // namespace

std::optional<int> chosen_gpu(const std::string& device) {
  if (device == "cpu") return {};
  const bool any = device == "auto";
  const int number = any ? 0 : gpu_number(device);
#if HEED_HAS_CUDA
  if (any && (survey_gpus().count == 0 || !is_new_enough(number))) return {};
  check_gpu(number);
  return number;
#else
  static_cast<void>(number);
  if (any) return {};
  throw Error("--device " + device +
              ": this heed was built without kernels of GPUs (build it where NVIDIA's CUDA Toolkit is installed, with "
              "-DHEED_CUDA=ON, or use --device cpu)");
#endif
}

std::optional<int> chosen_gpu(const std::string& device, int ranks, const std::string& verb) {
  if (ranks == 1) return chosen_gpu(device);
  if (device != "auto" && device != "cpu")
    throw UsageError("--device " + device + ": several ranks " + verb + " on CPUs (use --device cpu, or one rank)");
  return {};
}

}  // namespace heed
