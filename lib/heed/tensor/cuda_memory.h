#pragma once

#include <cstddef>
#include <cstdint>

#include "heed/tensor/cuda_context.h"
#include "heed/tensor/memory.h"

namespace heed {

/// The alignment in bytes of memory of a GPU: cuBLASLt wants it for the memory of partial sums.
constexpr std::size_t kGpuAlignment = 256;
/// The memory of the current GPU, aligned to kGpuAlignment. allocate() throws OutOfGpuMemory where the GPU has not as
/// much left.
extern const MemorySource kGpuMemory;
/// Memory of the host that is locked for the GPU, which copies from and to it while the host goes on. It is expensive
/// to allocate.
extern const MemorySource kLockedMemory;

/// Makes the GPU of the context the current GPU of the calling thread. Throws Error if CUDA refuses.
void use_gpu(const CudaContext& device);
/// Copies bytes from the memory of the host to that of the GPU, after all kernels before. The memory of the host may
/// change as soon as the function has returned: it copies them to locked memory, and waits only where the GPU is far
/// behind.
void copy_to_gpu(CudaContext& device, void* to, const void* from, std::size_t bytes);
/// Returns the address of a copy of these bytes in the memory of the GPU, which is valid until forget_uploads(). The
/// memory of the host may change as soon as the function has returned. Bytes that were copied before are not copied
/// again: all layers of a model read the same few lists that describe a batch.
const void* upload_bytes(CudaContext& device, const void* from, std::size_t bytes);
/// Frees the memory of all copies of upload_bytes() for reuse.
void forget_uploads(CudaContext& device);
/// Lets a kernel use `bytes` bytes of shared memory for each block, of which CUDA allows 48 KiB without being asked.
/// Throws Error where the GPU has not as much. `kernel` is the function of the kernel.
void allow_shared_memory(const CudaContext& device, const void* kernel, std::size_t bytes);
/// Copies bytes within the memory of the GPU, or from kLockedMemory to it.
void copy_on_gpu(const CudaContext& device, void* to, const void* from, std::size_t bytes);
/// Copies bytes from the memory of the GPU to the memory of the host, after the kernels that are already in the stream
/// or in the step that is collected (see CudaGraphs).
/// If `to` is in kLockedMemory, the function returns at once, and the host may read the bytes after wait_for_gpu() or
/// GpuEvent::wait(). If `to` is in ordinary memory, the function waits for the GPU.
void copy_from_gpu(const CudaContext& device, void* to, const void* from, std::size_t bytes);
/// Waits until the GPU has run all kernels and copies of the context. Throws Error where one of them has failed.
void wait_for_gpu(const CudaContext& device);

/// A point in the stream of a context, for which the host can wait.
class GpuEvent {
 public:
  GpuEvent();
  ~GpuEvent();
  GpuEvent(const GpuEvent&) = delete;
  GpuEvent& operator=(const GpuEvent&) = delete;

  /// Sets the point behind all kernels and copies that the stream and the step that is collected have so far.
  void record(const CudaContext& device);
  /// Waits until the GPU has reached the point; does nothing where no point was recorded. Throws Error where a kernel
  /// has failed.
  void wait() const;

 private:
  std::uintptr_t handle_ = 0;  // CUDA's event, or that of the emulation
};

/// Sets n elements in the memory of the GPU to `value`. T is float, double or std::uint8_t.
template <class T>
void fill_on_gpu(const CudaContext& device, T* to, std::int64_t n, T value);

}  // namespace heed
