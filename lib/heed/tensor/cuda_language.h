// What the kernels of GPUs (*_cuda.cu) are written in: the words of CUDA, and the few functions that most kernels need.
//
// nvcc compiles a kernel for a GPU. The tests compile the same file with the compiler of the host, over an emulation of
// CUDA (tests/cuda/cuda_emulation.h), so that kernels are tested on machines without a GPU.
//
// The kernels keep two rules, so that the same computation has the same bits every time: no atomic operation on numbers
// with a fraction, and a fixed number of blocks and order of sums, whatever the GPU.
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>
#include <string>
#include <type_traits>

#include "heed/base/error.h"
#include "heed/tensor/cuda_context.h"
#include "heed/tensor/cuda_graphs.h"
#include "heed/tensor/cuda_memory.h"

#ifdef __CUDACC__
#include <cuda_runtime.h>
/// Before a loop: the compiler repeats its body, so that an array which the loop indexes stays in registers.
#define HEED_UNROLL _Pragma("unroll")
#else
#include <cuda_emulation.h>
#define HEED_UNROLL
#endif

namespace heed {

/// The blocks of a grid, the threads of a block, and the bytes that the threads of a block share.
struct LaunchShape {
  unsigned blocks = 1, threads = 256;
  std::size_t shared_bytes = 0;
};

/// Returns the shape of a launch in which each thread has about one of n elements, or several where there are more than
/// 4,096 blocks; see for_each_element().
inline LaunchShape shape_for_elements(std::int64_t n) {
  constexpr std::int64_t kThreads = 256, kMostBlocks = 4096;
  return {static_cast<unsigned>(std::clamp<std::int64_t>((n + kThreads - 1) / kThreads, 0, kMostBlocks)), kThreads};
}

/// Returns the shape of a launch with a block for each of `rows` rows, whose threads share the elements of the row, and
/// scratch memory for block_sum() and the like of numbers T.
template <class T>
LaunchShape shape_for_rows(std::int64_t rows, std::int64_t columns) {
  const unsigned threads = columns <= 32 ? 32 : columns <= 128 ? 128 : 256;
  return {static_cast<unsigned>(rows), threads, threads / 32 * sizeof(T)};
}

/// Puts a kernel into the stream of the context, or adds it to the commands of its step (see CudaGraphs); nothing where
/// the grid has no blocks. Throws Error where CUDA refuses it.
template <class... Parameters>
void launch(const CudaContext& device, const LaunchShape& shape, void (*kernel)(Parameters...),
            std::type_identity_t<Parameters>... arguments) {
  if (shape.blocks == 0) return;
  constexpr std::size_t kWithoutAsking = 48 * 1024;  // bytes of shared memory
  if (shape.shared_bytes > kWithoutAsking)
    allow_shared_memory(device, reinterpret_cast<const void*>(kernel), shape.shared_bytes);
  const auto submit = [=](const CudaContext& to) {
#ifdef __CUDACC__
    kernel<<<shape.blocks, shape.threads, shape.shared_bytes, to.stream>>>(arguments...);
    if (const cudaError_t error = cudaGetLastError(); error != cudaSuccess)
      throw Error(std::string("the GPU refuses a kernel: ") + cudaGetErrorString(error));
#else
    static_cast<void>(to);
    (emulation::require_memory_of_gpu(arguments), ...);
    emulation::run_grid({shape.blocks}, {shape.threads}, shape.shared_bytes, [&] { kernel(arguments...); });
#endif
  };
  put_command(device, submit, kernel, shape.blocks, shape.threads, shape.shared_bytes, arguments...);
}

/// Returns a copy of an array of the host in the memory of the GPU (see upload_bytes()).
template <class T>
const T* upload(CudaContext& device, std::span<const T> host) {
  static_assert(std::is_trivially_copyable_v<T>);
  return static_cast<const T*>(upload_bytes(device, host.data(), host.size_bytes()));
}

/// Copies an array in the memory of the GPU to the host, after all kernels before. The host may read it after
/// wait_for_gpu().
template <class T>
void download(CudaContext& device, const T* from, std::span<std::type_identity_t<T>> host) {
  static_assert(std::is_trivially_copyable_v<T>);
  copy_from_gpu(device, host.data(), from, host.size_bytes());
}

/// Returns the memory that the threads of a block share: LaunchShape::shared_bytes bytes, aligned to 16.
template <class T>
__device__ T* shared_memory() {
#ifdef __CUDACC__
  extern __shared__ float4 memory[];
  return reinterpret_cast<T*>(memory);
#else
  return static_cast<T*>(emulation::block_memory());
#endif
}

/// Calls body(i) for each i from 0 to n - 1; one thread of the grid makes each call. Thread number t of the grid takes
/// the elements t, t + s, t + 2 s, ..., where s is the number of threads in the grid.
template <class Body>
__device__ __forceinline__ void for_each_element(std::int64_t n, const Body& body) {
  const std::int64_t step = std::int64_t{gridDim.x} * blockDim.x;
  for (std::int64_t i = std::int64_t{blockIdx.x} * blockDim.x + threadIdx.x; i < n; i += step) body(i);
}

/// Calls body(i) for each element i of the row of this block (see shape_for_rows()), once in the whole block.
template <class Body>
__device__ __forceinline__ void for_each_of_row(std::int64_t columns, const Body& body) {
  const std::int64_t begin = blockIdx.x * columns;
  for (std::int64_t i = begin + threadIdx.x; i < begin + columns; i += blockDim.x) body(i);
}

/// Returns the number of the thread within its warp of 32 threads.
__device__ inline int lane_of_warp() {
  return static_cast<int>(threadIdx.x) % 32;
}

/// Combines the values of the 32 threads of a warp in a fixed order, and returns the result to each of them (see
/// combine_block()).
template <class T, class Combine>
__device__ T combine_warp(T value, const Combine& combine) {
  for (int bits = 16; bits > 0; bits /= 2) value = combine(value, __shfl_xor_sync(0xFFFFFFFF, value, bits));
  return value;
}

/// Returns the sum of the values of the threads of a warp to each of them.
template <class T>
__device__ T warp_sum(T value) {
  return combine_warp(value, [](T a, T b) { return a + b; });
}

/// Returns the larger of two numbers, or NaN where one of them is NaN: the same whatever their order, so that all
/// threads of a warp get the same maximum and take the same branches.
template <class T>
__device__ T larger(T a, T b) {
  return a > b || a != a ? a : b;
}

/// Returns the largest of the values of the threads of a warp to each of them (NaN where one of them is NaN).
template <class T>
__device__ T warp_max(T value) {
  return combine_warp(value, larger<T>);
}

/// Combines the values of all threads of a block in a fixed order, and returns the result to each of them. combine(a,
/// b) must not depend on the order of a and b; `neutral` changes no value. The number of threads is a multiple of 32.
/// `scratch` is shared memory with room for one value for each 32 threads. No other code may use `scratch` between the
/// last __syncthreads() before the call and the next __syncthreads() after the call.
template <class T, class Combine>
__device__ T combine_block(T value, T neutral, T* scratch, const Combine& combine) {
  const unsigned lane = threadIdx.x % 32, warp = threadIdx.x / 32, warps = blockDim.x / 32;
  value = combine_warp(value, combine);
  if (lane == 0) scratch[warp] = value;
  __syncthreads();
  value = combine_warp(lane < warps ? scratch[lane] : neutral, combine);
  __syncthreads();
  return value;
}

/// Returns the sum of the values of all threads of a block to each of them (see combine_block()).
template <class T>
__device__ T block_sum(T value, T* scratch) {
  return combine_block(value, T(0), scratch, [](T a, T b) { return a + b; });
}

/// Returns the largest of the values of all threads of a block to each of them (NaN where one of them is NaN; see
/// combine_block()).
template <class T>
__device__ T block_max(T value, T* scratch) {
  return combine_block(value, value, scratch, larger<T>);
}

}  // namespace heed
