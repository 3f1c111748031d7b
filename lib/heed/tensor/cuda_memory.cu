#include "heed/tensor/cuda_memory.h"

#include <cstring>

#include "heed/tensor/cuda_language.h"

namespace heed {
namespace {

#ifdef __CUDACC__

void check(cudaError_t error, const char* what) {
  if (error != cudaSuccess) throw Error(std::string(what) + ": " + cudaGetErrorString(error));
}

void* allocate(std::size_t bytes) {
  void* memory = nullptr;
  if (cudaMalloc(&memory, bytes) == cudaSuccess) return memory;
  cudaGetLastError();  // so that later calls do not report it again
  std::size_t left = 0, all = 0;
  cudaMemGetInfo(&left, &all);
  throw Error("the GPU has no " + std::to_string(bytes >> 20) + " MiB of memory left (" + std::to_string(left >> 20) +
              " of " + std::to_string(all >> 20) +
              " MiB are free): lower --mini-batch-words, or the size of the model");
}

void free(void* memory, std::size_t) {
  cudaFree(memory);
}

void copy(const CudaContext& device, void* to, const void* from, std::size_t bytes, cudaMemcpyKind kind) {
  check(cudaMemcpyAsync(to, from, bytes, kind, device.stream), "the GPU refuses a copy");
}

#endif

template <class T>
__global__ void fill_kernel(T* to, std::int64_t n, T value) {
  for_each_element(n, [&](std::int64_t i) { to[i] = value; });
}

}  // namespace

#ifdef __CUDACC__

const MemorySource kGpuMemory{allocate, free};

void use_gpu(const CudaContext& device) {
  check(cudaSetDevice(device.number), "the GPU cannot be used");
}
void copy_to_gpu(const CudaContext& device, void* to, const void* from, std::size_t bytes) {
  copy(device, to, from, bytes, cudaMemcpyHostToDevice);
}
void copy_on_gpu(const CudaContext& device, void* to, const void* from, std::size_t bytes) {
  copy(device, to, from, bytes, cudaMemcpyDeviceToDevice);
}
void copy_from_gpu(const CudaContext& device, void* to, const void* from, std::size_t bytes) {
  copy(device, to, from, bytes, cudaMemcpyDeviceToHost);
}
void wait_for_gpu(const CudaContext& device) {
  check(cudaStreamSynchronize(device.stream), "the GPU has failed");
}

#else

const MemorySource kGpuMemory{emulation::allocate_on_gpu, emulation::free_on_gpu};

void use_gpu(const CudaContext&) {}
void copy_to_gpu(const CudaContext&, void* to, const void* from, std::size_t bytes) {
  emulation::copy(to, from, bytes);
}
void copy_on_gpu(const CudaContext&, void* to, const void* from, std::size_t bytes) {
  emulation::copy(to, from, bytes);
}
void copy_from_gpu(const CudaContext&, void* to, const void* from, std::size_t bytes) {
  emulation::copy(to, from, bytes);
}
void wait_for_gpu(const CudaContext&) {}

#endif

template <class T>
void fill_on_gpu(const CudaContext& device, T* to, std::int64_t n, T value) {
  launch(device, shape_for_elements(n), fill_kernel<T>, to, n, value);
}

template void fill_on_gpu(const CudaContext&, float*, std::int64_t, float);
template void fill_on_gpu(const CudaContext&, double*, std::int64_t, double);
template void fill_on_gpu(const CudaContext&, std::uint8_t*, std::int64_t, std::uint8_t);

}  // namespace heed
