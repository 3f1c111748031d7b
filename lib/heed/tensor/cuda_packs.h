// Packs: a few numbers next to each other in memory, which a thread of a GPU reads or writes at once.
//
// Most kernels of a training do little but read and write memory. A GPU is as fast as its memory only if each thread
// has many bytes under way, and an instruction takes 16 bytes as fast as 4. The address of a pack must be a multiple of
// its size, or of 16 if the pack is larger than 16 bytes: takes_packs() tells whether arrays allow it.
#pragma once

#include <cstdint>
#include <cstring>
#include <type_traits>

#include "heed/tensor/bfloat16.h"
#include "heed/tensor/cuda_language.h"
#include "heed/tensor/cuda_mma.h"

namespace heed {

/// The alignment in bytes of a pack of N numbers T. N is a power of two.
template <class T, int N>
constexpr std::size_t kPackAlignment = N * sizeof(T) < 16 ? N * sizeof(T) : 16;

/// N numbers that are next to each other in memory.
template <class T, int N>
struct alignas(kPackAlignment<T, N>) Pack {
  T values[N];

  __device__ T& operator[](int k) { return values[k]; }
  __device__ const T& operator[](int k) const { return values[k]; }
};

#ifdef __CUDACC__
/// The type of CUDA with this number of bytes, which nvcc reads by one instruction.
template <std::size_t kBytes>
using WordOfBytes = std::conditional_t<
    kBytes == 16, uint4,
    std::conditional_t<
        kBytes == 8, uint2,
        std::conditional_t<kBytes == 4, std::uint32_t, std::conditional_t<kBytes == 2, std::uint16_t, std::uint8_t>>>>;

/// Stores a word at an address of the GPU's memory that is not shared memory. nvcc may divide a word of 16 bytes.
template <class Word>
__device__ __forceinline__ void store_word(const Word& word, Word* to) {
  if constexpr (std::is_same_v<Word, uint4>)
    asm volatile("st.global.v4.b32 [%0], {%1, %2, %3, %4};"
                 :
                 : "l"(__cvta_generic_to_global(to)), "r"(word.x), "r"(word.y), "r"(word.z), "r"(word.w)
                 : "memory");
  else
    *to = word;
}
#endif

/// Loads N numbers from an aligned address on.
template <int N, class T>
__device__ __forceinline__ Pack<T, N> load_pack(const T* from) {
  Pack<T, N> out;
#ifdef __CUDACC__
  using Word = WordOfBytes<kPackAlignment<T, N>>;
  Word words[sizeof(out) / sizeof(Word)];
  HEED_UNROLL
  for (std::size_t w = 0; w < sizeof(out) / sizeof(Word); ++w) words[w] = reinterpret_cast<const Word*>(from)[w];
  std::memcpy(&out, words, sizeof(out));
#else
  emulation::require_alignment(from, kPackAlignment<T, N>);
  std::memcpy(&out, from, sizeof(out));
#endif
  return out;
}

/// Stores N numbers from an aligned address on, which is not in shared memory.
template <class T, int N>
__device__ __forceinline__ void store_pack(const Pack<T, N>& numbers, std::type_identity_t<T>* to) {
#ifdef __CUDACC__
  using Word = WordOfBytes<kPackAlignment<T, N>>;
  Word words[sizeof(numbers) / sizeof(Word)];
  std::memcpy(words, &numbers, sizeof(numbers));
  HEED_UNROLL
  for (std::size_t w = 0; w < sizeof(numbers) / sizeof(Word); ++w)
    store_word(words[w], reinterpret_cast<Word*>(to) + w);
#else
  emulation::require_alignment(to, kPackAlignment<T, N>);
  std::memcpy(to, &numbers, sizeof(numbers));
#endif
}

/// Returns N numbers rounded to bfloat16.
template <class T, int N>
__device__ __forceinline__ Pack<Bfloat16, N> round_pack(const Pack<T, N>& numbers) {
  Pack<Bfloat16, N> out;
  if constexpr (N % 2 == 0) {
    HEED_UNROLL
    for (int k = 0; k < N; k += 2) {
      const std::uint32_t word = pack_bfloat16(static_cast<float>(numbers[k]), static_cast<float>(numbers[k + 1]));
      out[k] = static_cast<Bfloat16>(word & 0xFFFF);
      out[k + 1] = static_cast<Bfloat16>(word >> 16);
    }
  } else {
    out[0] = to_bfloat16(static_cast<float>(numbers[0]));
  }
  return out;
}

/// Returns N numbers in the type To: bfloat16 numbers in full precision, or numbers that are in full precision already.
template <class To, class T, int N>
__device__ __forceinline__ Pack<To, N> widen_pack(const Pack<T, N>& numbers) {
  Pack<To, N> out;
  HEED_UNROLL
  for (int k = 0; k < N; ++k) {
    if constexpr (std::is_same_v<T, Bfloat16>)
      out[k] = static_cast<To>(from_bfloat16(numbers[k]));
    else
      out[k] = numbers[k];
  }
  return out;
}

/// Returns the sum of two packs.
template <class T, int N>
__device__ __forceinline__ Pack<T, N> add_packs(Pack<T, N> x, const Pack<T, N>& y) {
  HEED_UNROLL
  for (int k = 0; k < N; ++k) x[k] += y[k];
  return x;
}

/// Tells whether the rows of matrices with this number of columns consist of packs of N numbers, and the addresses are
/// those of packs. A null address is allowed.
template <int N, class... T>
bool takes_packs(std::int64_t columns, T*... arrays) {
  return columns % N == 0 && ((reinterpret_cast<std::uintptr_t>(arrays) % kPackAlignment<T, N> == 0) && ...);
}

/// Calls run(n), where n.value is N if `packs` is true, and otherwise 1: the size of the packs of a kernel.
template <int N, class Run>
void with_packs(bool packs, const Run& run) {
  if (packs)
    run(std::integral_constant<int, N>());
  else
    run(std::integral_constant<int, 1>());
}

}  // namespace heed
