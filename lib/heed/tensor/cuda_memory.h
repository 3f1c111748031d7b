#pragma once

#include <cstddef>
#include <cstdint>

#include "heed/tensor/cuda_context.h"
#include "heed/tensor/memory.h"

namespace heed {

/// The memory of the current GPU. allocate() throws Error where the GPU has not as much left.
extern const MemorySource kGpuMemory;

/// Makes the GPU of the context that of the calling thread.
void use_gpu(const CudaContext& device);
/// Copies bytes from the memory of the host to that of the GPU, after all kernels before. The memory of the host may
/// change as soon as the function has returned.
void copy_to_gpu(const CudaContext& device, void* to, const void* from, std::size_t bytes);
/// Copies bytes within the memory of the GPU.
void copy_on_gpu(const CudaContext& device, void* to, const void* from, std::size_t bytes);
/// Copies bytes from the memory of the GPU to that of the host, after all kernels before. The host may read them after
/// wait_for_gpu(), or at once where the memory of the host is ordinary memory, which is not locked for the GPU.
void copy_from_gpu(const CudaContext& device, void* to, const void* from, std::size_t bytes);
/// Waits until the GPU has run all kernels and copies of the context. Throws Error where one of them has failed.
void wait_for_gpu(const CudaContext& device);

/// Sets n elements in the memory of the GPU to `value`. T is float, double or std::uint8_t.
template <class T>
void fill_on_gpu(const CudaContext& device, T* to, std::int64_t n, T value);

}  // namespace heed
