// A small emulation of CUDA's model on the host, on which the kernels of GPUs are tested where there is no GPU.
//
// The problem: a kernel is written for many threads that run at once, and most machines that build heed have no GPU.
// The idea: a C++ compiler reads the same source, with the words of CUDA that this header defines, and each thread of a
// block is a fibre: a function with a stack of its own. One fibre runs at a time, until it waits for others or ends;
// the next fibre is then chosen by ThreadOrder. The blocks of a grid run one after the other.
//
// What the emulation finds:
//   - a wrong result, by comparison with the kernels of the CPU;
//   - a race: threads that read and write the same memory without a barrier between them give other results in another
//     order of the threads. Tests run a kernel in every ThreadOrder and compare the bits;
//   - an access outside of an array, by AddressSanitizer: the memory of a block has exactly the size that was asked
//   for;
//   - a number that no thread wrote: the memory of a block begins as NaN;
//   - memory of the host among the parameters of a kernel, which a GPU cannot read;
//   - threads that wait for each other for ever, such as a barrier that only some threads reach, or a word of the warp
//     (a shuffle, a vote) that its lanes do not all reach at the same place of the source: run_grid() throws.
//
// An example, a sum over the threads of a block with a barrier:
//
//   block of 4 threads, ascending     thread 0 writes m[0], waits; 1 writes m[1], waits; 2; 3: all wait, all go on
//                                     thread 0 reads m[0] ... m[3], ends; 1; 2; 3
//   without the barrier               thread 0 reads m[1] ... m[3] before they are written: NaN
//   without it, descending            thread 3 reads NaN, thread 0 reads all: other bits than before
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <functional>
#include <source_location>
#include <type_traits>

#define __global__
#define __device__
#define __host__
#define __forceinline__ inline __attribute__((always_inline))
#define __launch_bounds__(...)

struct dim3 {
  unsigned x = 1, y = 1, z = 1;
};

namespace heed::emulation {

/// The order in which the threads of a block run between two waits, and the blocks of a grid one after the other
/// (from the last to the first with `descending`).
enum class ThreadOrder {
  ascending,
  descending,
  shuffled  ///< another order after each wait, from a fixed stream of random numbers
};
constexpr ThreadOrder kThreadOrders[] = {ThreadOrder::ascending, ThreadOrder::descending, ThreadOrder::shuffled};
/// Sets the order for the following calls of run_grid() by the calling thread. It is `ascending` at first.
void set_thread_order(ThreadOrder order);

/// Calls kernel() once for each thread of a grid. The threads of a block share `shared_bytes` bytes of memory, which
/// begin as NaN. Throws Error where the threads of a block wait for each other for ever, and what a thread has thrown.
void run_grid(dim3 grid, dim3 block, std::size_t shared_bytes, const std::function<void()>& kernel);

/// Stand in for cudaMalloc() and cudaFree(). Only kernels and copy() may read or write this memory: for the host it is
/// protected, so that code which takes it for memory of its own crashes, as it would with a GPU.
void* allocate_on_gpu(std::size_t bytes);
void free_on_gpu(void* memory, std::size_t bytes);
/// Sets how many bytes allocate_on_gpu() hands out at most to the calling thread, which then throws OutOfGpuMemory.
void limit_gpu_memory(std::size_t bytes);
/// Throws Error where a parameter of a kernel holds an address of the host's memory, unless the calling thread has no
/// memory of the GPU at all, or in the scope of an AllowHostMemory. A parameter is a number, a pointer, or a class with
/// pointers.
template <class Parameter>
void require_memory_of_gpu(Parameter parameter);
/// Lets kernels read memory of the host beside that of the GPU, for tests that give them both.
struct AllowHostMemory {
  AllowHostMemory();
  ~AllowHostMemory();
  AllowHostMemory(const AllowHostMemory&) = delete;
  AllowHostMemory& operator=(const AllowHostMemory&) = delete;
};
/// Stand in for cudaHostAlloc() and cudaFreeHost(): memory of the host that is locked for the GPU.
void* allocate_locked(std::size_t bytes);
void free_locked(void* memory, std::size_t bytes);
/// Stands in for cudaMemcpyAsync() of any kind. Kernels run at once, but a copy from or to locked memory is as late as
/// CUDA allows, so that code which does not wait for it fails: bytes are read from locked memory when the next kernel
/// runs, and arrive in locked memory when the host waits for them.
void copy(void* to, const void* from, std::size_t bytes);
/// Returns the point behind all copies so far, for wait_until(): not 0.
std::uintptr_t point();
/// Waits until all copies before a point are done.
void wait_until(std::uintptr_t point);

/// Stands in for cudaGraphInstantiate(): returns whether a graph is made (see tensor/cuda_graphs.h).
bool make_graph();
/// Lets the calling thread make no graphs from now on, or make them again, because CUDA may refuse one.
void refuse_graphs(bool refuse);
/// Returns how many graphs the calling thread has made.
int graphs_made();

/// The place of the thread that runs, and the sizes of block and grid.
struct Place {
  dim3 thread, block, block_size, grid_size;
};
/// Returns the place of the thread that runs. Only a kernel may call this and the following functions.
const Place& place();
/// Returns the memory that the threads of the block share.
void* block_memory();
/// Waits until all threads of the block that have not ended wait here.
void wait_for_block();
/// Hands `value` to the other threads of the warp: returns the value of the lane `source` where the lane is in `mask`,
/// otherwise the own value. All lanes of `mask` must call this function with the same mask, at the same place of the
/// source, `at`.
std::uint64_t exchange(unsigned mask, std::uint64_t value, int source,
                       std::source_location at = std::source_location::current());
/// Returns a word with a bit for each lane of `mask`: whether its `predicate` is true. `at` is as in exchange().
unsigned ballot(unsigned mask, bool predicate, std::source_location at);
/// Stands in for mma.m16n8k16 (see tensor/cuda_mma.h): all lanes of a warp compute C += A B, sums in the order of the
/// columns of A.
void multiply_add(float (&c)[4], const std::uint32_t (&a)[4], const std::uint32_t (&b)[2]);
/// Throws Error where an address is no multiple of `bytes`, as CUDA wants it for words of so many bytes.
void require_alignment(const void* address, std::size_t bytes = 16);
/// Stands in for ldmatrix.x4 (see tensor/cuda_mma.h): all lanes of a warp load four matrices, whose rows must be
/// aligned.
void load_matrices(std::uint32_t (&words)[4], const std::uint32_t* row, bool transposed);
/// Stands in for cp.async: copies 16 bytes to the memory of the block as late as CUDA allows, when this thread calls
/// wait_for_copies(). A null address stands for zeros. Both addresses must be aligned.
void copy_later(void* to, const void* from);
void wait_for_copies();
/// Returns the number of the calling thread within its warp of 32 threads.
int lane();

/// Throws Error where one of the words is the address of memory that is not the GPU's.
void require_memory_of_gpu(const std::uintptr_t* words, std::size_t n);

template <class Parameter>
void require_memory_of_gpu([[maybe_unused]] Parameter parameter) {
// Bytes between the members of a class may hold old addresses, and only this function clears them.
#if __has_builtin(__builtin_clear_padding)
  static_assert(std::is_trivially_copyable_v<Parameter>);
  constexpr std::size_t kWords = sizeof(Parameter) / sizeof(std::uintptr_t);
  if constexpr (alignof(Parameter) >= alignof(void*)) {
    __builtin_clear_padding(&parameter);
    std::uintptr_t words[kWords];
    std::memcpy(words, &parameter, sizeof words);
    require_memory_of_gpu(words, kWords);
  }
#endif
}

template <class T>
T exchange_value(unsigned mask, T value, int source, std::source_location at) {
  static_assert(sizeof(T) <= sizeof(std::uint64_t) && std::is_trivially_copyable_v<T>);
  std::uint64_t bits = 0;
  std::memcpy(&bits, &value, sizeof(T));
  bits = exchange(mask, bits, source, at);
  std::memcpy(&value, &bits, sizeof(T));
  return value;
}

}  // namespace heed::emulation

// The words of CUDA. A lane beyond the warp, or of another group of `width` lanes, gives the own value, as in CUDA.
#define threadIdx (::heed::emulation::place().thread)
#define blockIdx (::heed::emulation::place().block)
#define blockDim (::heed::emulation::place().block_size)
#define gridDim (::heed::emulation::place().grid_size)

constexpr int warpSize = 32;

inline void __syncthreads() {
  heed::emulation::wait_for_block();
}
using HeedPlace = std::source_location;  // where in the source a word of the warp stands
inline void __syncwarp(unsigned mask = 0xFFFFFFFF, HeedPlace at = HeedPlace::current()) {
  heed::emulation::ballot(mask, true, at);
}
inline unsigned __ballot_sync(unsigned mask, int predicate, HeedPlace at = HeedPlace::current()) {
  return heed::emulation::ballot(mask, predicate != 0, at);
}
inline int __any_sync(unsigned mask, int predicate, HeedPlace at = HeedPlace::current()) {
  return heed::emulation::ballot(mask, predicate != 0, at) != 0;
}
inline int __all_sync(unsigned mask, int predicate, HeedPlace at = HeedPlace::current()) {
  return heed::emulation::ballot(mask, predicate != 0, at) == mask;
}
/// Adds to a number of the block's memory, and returns the number before.
inline int atomicAdd(int* to, int summand) {
  const int before = *to;
  *to += summand;
  return before;
}
template <class T>
T __shfl_sync(unsigned mask, T value, int source, int width = 32, HeedPlace at = HeedPlace::current()) {
  const int lane = heed::emulation::lane();
  return heed::emulation::exchange_value(mask, value, lane / width * width + source % width, at);
}
template <class T>
T __shfl_xor_sync(unsigned mask, T value, int bits, int width = 32, HeedPlace at = HeedPlace::current()) {
  const int lane = heed::emulation::lane(), source = lane ^ bits;
  return heed::emulation::exchange_value(mask, value, source / width <= lane / width ? source : lane, at);
}
template <class T>
T __shfl_down_sync(unsigned mask, T value, unsigned delta, int width = 32, HeedPlace at = HeedPlace::current()) {
  const int lane = heed::emulation::lane(), source = lane + static_cast<int>(delta);
  return heed::emulation::exchange_value(mask, value, source / width == lane / width ? source : lane, at);
}
template <class T>
T __shfl_up_sync(unsigned mask, T value, unsigned delta, int width = 32, HeedPlace at = HeedPlace::current()) {
  const int lane = heed::emulation::lane(), source = lane - static_cast<int>(delta);
  return heed::emulation::exchange_value(mask, value, source >= lane / width * width ? source : lane, at);
}
