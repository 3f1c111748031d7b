#include "heed/tensor/cuda_memory.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <functional>
#include <string_view>
#include <unordered_map>

#include "heed/tensor/cuda_language.h"

namespace heed {
namespace {

#ifdef __CUDACC__

void check(cudaError_t error, const char* what) {
  if (error != cudaSuccess) throw Error(std::string(what) + ": " + cudaGetErrorString(error));
}

void* allocate(std::size_t bytes) {
  void* memory = nullptr;
  const cudaError_t error = cudaMalloc(&memory, bytes);
  if (error == cudaSuccess) return memory;
  if (error != cudaErrorMemoryAllocation) check(error, "the GPU has failed");  // in a kernel before
  cudaGetLastError();  // so that later calls do not report it again
  std::size_t left = 0, all = 0;
  cudaMemGetInfo(&left, &all);
  throw OutOfGpuMemory("the GPU has no " + std::to_string(bytes >> 20) + " MiB of memory left (" +
                       std::to_string(left >> 20) + " of " + std::to_string(all >> 20) +
                       " MiB are free): lower --mini-batch-words, or the size of the model");
}

void free(void* memory, std::size_t) {
  cudaFree(memory);
}

void* allocate_locked(std::size_t bytes) {
  void* memory = nullptr;
  check(cudaHostAlloc(&memory, bytes, cudaHostAllocPortable), "no memory of this machine can be locked for the GPU");
  return memory;
}

void free_locked(void* memory, std::size_t) {
  cudaFreeHost(memory);
}

/// Copies bytes from locked memory to that of the GPU, or within that of the GPU.
void copy_now(const CudaContext& device, void* to, const void* from, std::size_t bytes) {
  check(cudaMemcpyAsync(to, from, bytes, cudaMemcpyDefault, device.stream), "the GPU refuses a copy");
}

#else

void copy_now(const CudaContext&, void* to, const void* from, std::size_t bytes) {
  emulation::copy(to, from, bytes);
}

#endif

template <class T>
__global__ void fill_kernel(T* to, std::int64_t n, T value) {
  for_each_element(n, [&](std::int64_t i) { to[i] = value; });
}

}  // namespace

// Without locked memory, CUDA may wait for all kernels before it copies, and each op copies some arrays.
/// A ring of locked memory through which bytes go to the GPU. It has parts; a part is used again when the GPU has made
/// all copies from it.
class CudaStaging {
 public:
  CudaStaging() : memory_(static_cast<std::byte*>(kLockedMemory.allocate(kParts * kPartBytes))) {}
  ~CudaStaging() { kLockedMemory.free(memory_, kParts * kPartBytes); }
  CudaStaging(const CudaStaging&) = delete;
  CudaStaging& operator=(const CudaStaging&) = delete;

  void copy(const CudaContext& device, std::byte* to, const std::byte* from, std::size_t bytes) {
    while (bytes > 0) {
      if (used_ == kPartBytes) go_on(device);
      const std::size_t some = std::min(bytes, kPartBytes - used_);
      std::byte* const staged = memory_ + part_ * kPartBytes + used_;
      std::memcpy(staged, from, some);
      copy_now(device, to, staged, some);
      used_ += some;
      to += some;
      from += some;
      bytes -= some;
    }
  }

 private:
  static constexpr std::size_t kParts = 4, kPartBytes = std::size_t{2} << 20;

  /// Begins the next part.
  void go_on(const CudaContext& device) {
    copied_[part_].record(device);
    part_ = (part_ + 1) % kParts;
    copied_[part_].wait();
    used_ = 0;
  }

  std::byte* memory_;
  std::array<GpuEvent, kParts> copied_;  // the last copy from each part
  std::size_t part_ = 0, used_ = 0;
};

void copy_to_gpu(CudaContext& device, void* to, const void* from, std::size_t bytes) {
  if (bytes == 0) return;
  if (device.graphs && device.graphs->collects()) {
    if (std::byte* const staged = device.graphs->staging(bytes)) {
      std::memcpy(staged, from, bytes);
      return copy_on_gpu(device, to, staged, bytes);
    }
    submit_collected(device);
  }
  if (!device.staging) device.staging = std::make_shared<CudaStaging>();
  device.staging->copy(device, static_cast<std::byte*>(to), static_cast<const std::byte*>(from), bytes);
}

/// Copies of arrays of the host in the memory of the GPU, which are found by their bytes.
class CudaUploads {
 public:
  explicit CudaUploads(MemorySource gpu) : on_gpu_(gpu) {}

  const void* upload(CudaContext& device, std::string_view bytes) {
    const std::size_t hash = std::hash<std::string_view>()(bytes);
    const auto [begin, end] = copies_.equal_range(hash);
    for (auto copy = begin; copy != end; ++copy)
      if (copy->second.bytes == bytes) return copy->second.on_gpu;
    void* const to = on_gpu_.allocate(bytes.size());
    copy_to_gpu(device, to, bytes.data(), bytes.size());
    auto* const own = static_cast<char*>(on_host_.allocate(bytes.size()));
    std::ranges::copy(bytes, own);
    copies_.emplace(hash, Copy{{own, bytes.size()}, to});
    return to;
  }
  void forget() {
    copies_.clear();
    on_gpu_.reset();
    on_host_.reset();
  }

 private:
  struct Copy {
    std::string_view bytes;
    const void* on_gpu;
  };
  Arena on_gpu_, on_host_;
  std::unordered_multimap<std::size_t, Copy> copies_;  // by the hashes of their bytes
};

const void* upload_bytes(CudaContext& device, const void* from, std::size_t bytes) {
  if (!device.uploads) device.uploads = std::make_shared<CudaUploads>(device.arena.source());
  return device.uploads->upload(device, {static_cast<const char*>(from), bytes});
}

void copy_on_gpu(const CudaContext& device, void* to, const void* from, std::size_t bytes) {
  if (bytes == 0) return;
  put_command(
      device, [=](const CudaContext& gpu) { copy_now(gpu, to, from, bytes); }, copy_now, to, from, bytes);
}

void forget_uploads(CudaContext& device) {
  if (device.uploads) device.uploads->forget();
}

namespace {

[[noreturn]] void refuse_shared_memory(std::size_t bytes, std::size_t most) {
  throw Error("the GPU has " + std::to_string(most >> 10) + " KiB of shared memory for the threads of a block, and a" +
              " kernel needs " + std::to_string((bytes + 1023) >> 10) +
              " KiB: give attention more heads, which makes each of them narrower, or take --device cpu");
}

}  // namespace

#ifdef __CUDACC__

const MemorySource kGpuMemory{allocate, free, kGpuAlignment};
const MemorySource kLockedMemory{allocate_locked, free_locked};

void use_gpu(const CudaContext& device) {
  check(cudaSetDevice(device.number), "the GPU cannot be used");
}
void allow_shared_memory(const CudaContext& device, const void* kernel, std::size_t bytes) {
  int most = 0;
  check(cudaDeviceGetAttribute(&most, cudaDevAttrMaxSharedMemoryPerBlockOptin, device.number), "the GPU has failed");
  if (bytes > static_cast<std::size_t>(most)) refuse_shared_memory(bytes, static_cast<std::size_t>(most));
  // Always all of it: another thread may be about to launch the kernel with more than these bytes.
  check(cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, most), "the GPU refuses a kernel");
}
void copy_from_gpu(const CudaContext& device, void* to, const void* from, std::size_t bytes) {
  submit_collected(device);
  check(cudaMemcpyAsync(to, from, bytes, cudaMemcpyDeviceToHost, device.stream), "the GPU refuses a copy");
}
void wait_for_gpu(const CudaContext& device) {
  submit_collected(device);
  check(cudaStreamSynchronize(device.stream), "the GPU has failed");
}

GpuEvent::GpuEvent() {
  cudaEvent_t event = nullptr;
  check(cudaEventCreateWithFlags(&event, cudaEventDisableTiming), "the GPU refuses an event");
  handle_ = reinterpret_cast<std::uintptr_t>(event);
}
GpuEvent::~GpuEvent() {
  cudaEventDestroy(reinterpret_cast<cudaEvent_t>(handle_));
}
void GpuEvent::record(const CudaContext& device) {
  submit_collected(device);
  check(cudaEventRecord(reinterpret_cast<cudaEvent_t>(handle_), device.stream), "the GPU refuses an event");
}
void GpuEvent::wait() const {
  check(cudaEventSynchronize(reinterpret_cast<cudaEvent_t>(handle_)), "the GPU has failed");
}

#else

const MemorySource kGpuMemory{emulation::allocate_on_gpu, emulation::free_on_gpu, kGpuAlignment};
const MemorySource kLockedMemory{emulation::allocate_locked, emulation::free_locked};

void use_gpu(const CudaContext&) {}
void allow_shared_memory(const CudaContext&, const void*, std::size_t bytes) {
  constexpr std::size_t kMost = 227 * 1024;  // of an H100
  if (bytes > kMost) refuse_shared_memory(bytes, kMost);
}
void copy_from_gpu(const CudaContext& device, void* to, const void* from, std::size_t bytes) {
  submit_collected(device);
  emulation::copy(to, from, bytes);
}
void wait_for_gpu(const CudaContext& device) {
  submit_collected(device);
  emulation::wait_until(emulation::point());
}

GpuEvent::GpuEvent() = default;
GpuEvent::~GpuEvent() = default;
void GpuEvent::record(const CudaContext& device) {
  submit_collected(device);
  handle_ = emulation::point();
}
void GpuEvent::wait() const {
  emulation::wait_until(handle_);
}

#endif

template <class T>
void fill_on_gpu(const CudaContext& device, T* to, std::int64_t n, T value) {
  launch(device, shape_for_elements(n), fill_kernel<T>, to, n, value);
}

template void fill_on_gpu(const CudaContext&, float*, std::int64_t, float);
template void fill_on_gpu(const CudaContext&, double*, std::int64_t, double);
template void fill_on_gpu(const CudaContext&, std::uint8_t*, std::int64_t, std::uint8_t);

}  // namespace heed
