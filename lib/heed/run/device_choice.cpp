#include "heed/run/device_choice.h"

#include <algorithm>
#include <charconv>
#include <string_view>

#include "heed/base/error.h"
#include "heed/base/instruction_set.h"
#include "heed/run/ranks.h"
#include "heed/tensor/cuda_device.h"
#include "heed/tensor/device.h"

namespace heed {
namespace {

constexpr std::string_view kAuto = "auto", kCuda = "cuda:";

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

#if HEED_HAS_CUDA
/// Returns one of the GPUs of this machine that heed can use: that of the process number `place`. Warns where heed can
/// use none of those that there are.
std::optional<int> any_gpu(int place, Log& log) {
  const GpuSurvey survey = survey_gpus();
  std::vector<int> usable;
  for (int number = 0; number < survey.count; ++number)
    if (is_new_enough(number)) usable.push_back(number);
  if (!usable.empty()) return usable[static_cast<std::size_t>(place) % usable.size()];
  if (survey.unusable || survey.count > 0)
    log.warn("--device auto takes the CPU: " + (survey.unusable ? survey.why_none : too_old(0)));
  return {};
}
#endif

/// Returns the GPU of the process number `place` on this machine.
std::optional<int> gpu_of_process(const std::string& device, int place, Log& log) {
  if (device == "cpu") return {};
  const bool any = device == kAuto;
  const int number = any ? 0 : gpu_number(device);
#if HEED_HAS_CUDA
  if (any) return any_gpu(place, log);
  check_gpu(number);
  return number;
#else
  static_cast<void>(number);
  static_cast<void>(place);
  static_cast<void>(log);
  if (any) return {};
  throw Error("--device " + device +
              ": this heed was built without kernels of GPUs (build it where NVIDIA's CUDA Toolkit is installed, with "
              "-DHEED_CUDA=ON, or use --device cpu)");
#endif
}

GpuInfo info_of(std::optional<int> gpu) {
#if HEED_HAS_CUDA
  if (gpu) return gpu_info(*gpu);
#endif
  static_cast<void>(gpu);
  return {};
}

}  // namespace

std::optional<int> chosen_gpu(const std::string& device, Log& log) {
  return gpu_of_process(device, 0, log);
}

std::optional<int> chosen_gpu(const std::string& device, Communicator& ranks, Log& log) {
  if (ranks.size() == 1) return chosen_gpu(device, log);
  const std::vector<std::string> hosts = hosts_of(ranks);
  const auto own_host = hosts.begin() + ranks.rank();
  std::optional<int> gpu;
  std::string id;
  run_together(ranks, [&] {
    gpu = gpu_of_process(device, static_cast<int>(std::count(hosts.begin(), own_host, *own_host)), log);
    if (gpu) id = info_of(gpu).id;
  });
  if (device == kAuto && ranks.any(gpu.has_value())) {
    const std::vector<std::string> ids = ranks.gather(id);
    run_on_first(ranks, [&] { check_gpus_of_ranks(hosts, ids); });
  }
  return gpu;
}

void check_gpus_of_ranks(const std::vector<std::string>& hosts, const std::vector<std::string>& ids) {
  const auto rank = [&](std::size_t r) { return "rank " + std::to_string(r) + " on " + hosts[r]; };
  const auto index = [&](auto found) { return static_cast<std::size_t>(found - ids.begin()); };
  if (const auto none = std::ranges::find(ids, ""); none != ids.end()) {
    const auto some = std::ranges::find_if(ids, [](const std::string& id) { return !id.empty(); });
    throw Error("--device auto: " + rank(index(none)) + " has no GPU that heed can use, but " + rank(index(some)) +
                " has one (start ranks where there are GPUs, or use --device cpu)");
  }
  for (auto id = ids.begin(); id != ids.end(); ++id)
    if (const auto before = std::find(ids.begin(), id, *id); before != id)
      throw Error("--device auto: " + rank(index(id)) + " would share a GPU with rank " +
                  std::to_string(index(before)) +
                  " (start one rank for each GPU of a machine, or use --device cpu, or --device cuda:N to share one)");
}

std::string processor_name(std::optional<int> gpu) {
  return gpu ? info_of(gpu).name : std::string(instruction_set_name(instruction_set()));
}

}  // namespace heed
