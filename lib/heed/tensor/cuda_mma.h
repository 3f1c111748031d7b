// Products of small matrices by the tensor cores of a GPU: the instruction mma.m16n8k16 for bfloat16 (NVIDIA, "PTX
// ISA", section "Warp-level matrix instructions"). The 32 threads of a warp compute C [16, 8] += A [16, 16] B [16, 8]
// together. Each thread holds some elements of each matrix. With g = lane / 4 and t = lane % 4, these are
//
//   A   word 0: row g, columns 2t and 2t + 1       word 1: row g + 8, the same columns
//       word 2: row g, columns 2t + 8 and 2t + 9   word 3: row g + 8, the same columns
//   B   word 0: rows 2t and 2t + 1, column g       word 1: rows 2t + 8 and 2t + 9, column g
//   C   elements 0 and 1: row g, columns 2t and 2t + 1; elements 2 and 3: row g + 8, the same columns
//
// A word holds two bfloat16 numbers, the first one in its lower half. Elements of C are thus where the elements of A
// are expected: a product can be the left operand of the next one without leaving the registers.
//
// The instruction ldmatrix (same manual) loads such words from shared memory, four matrices [8, 8] at a time: lane 8 m
// + r names the address of row r of matrix m, and word m gets row g, columns 2t and 2t + 1 of matrix m, or, transposed,
// rows 2t and 2t + 1, column g.
#pragma once

#include <cmath>
#include <cstdint>
#include <cstring>

#include "heed/tensor/bfloat16.h"
#include "heed/tensor/cuda_language.h"

namespace heed {

/// Returns two numbers rounded to bfloat16, the first one in the lower half.
__device__ __forceinline__ std::uint32_t pack_bfloat16(float first, float second) {
#ifdef __CUDACC__
  std::uint32_t out;
  asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(out) : "f"(second), "f"(first));
  return out;
#else
  return static_cast<std::uint32_t>(to_bfloat16(first)) | static_cast<std::uint32_t>(to_bfloat16(second)) << 16;
#endif
}

/// Returns exp(x) with a relative error of at most |x| 2^-22 or so: enough where the result is rounded to bfloat16.
__device__ __forceinline__ float fast_exp(float x) {
#ifdef __CUDACC__
  return __expf(x);
#else
  return std::exp(x);
#endif
}

/// Computes C += A B. All threads of a warp must call this together.
__device__ __forceinline__ void multiply_add(float (&c)[4], const std::uint32_t (&a)[4], const std::uint32_t (&b)[2]) {
#ifdef __CUDACC__
  asm("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, "
      "{%0, %1, %2, %3};"
      : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
#else
  emulation::multiply_add(c, a, b);
#endif
}

/// Loads words of four matrices [8, 8], whose rows are in shared memory; `row` is the address that this lane names, a
/// multiple of 16 bytes. All threads of a warp must call this together.
__device__ __forceinline__ void load_matrices(std::uint32_t (&words)[4], const std::uint32_t* row) {
#ifdef __CUDACC__
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
               : "=r"(words[0]), "=r"(words[1]), "=r"(words[2]), "=r"(words[3])
               : "r"(static_cast<std::uint32_t>(__cvta_generic_to_shared(row))));
#else
  emulation::load_matrices(words, row, false);
#endif
}
/// The same, transposed.
__device__ __forceinline__ void load_transposed(std::uint32_t (&words)[4], const std::uint32_t* row) {
#ifdef __CUDACC__
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];"
               : "=r"(words[0]), "=r"(words[1]), "=r"(words[2]), "=r"(words[3])
               : "r"(static_cast<std::uint32_t>(__cvta_generic_to_shared(row))));
#else
  emulation::load_matrices(words, row, true);
#endif
}

/// Begins to copy eight numbers to shared memory, both at addresses that are multiples of 16 bytes. Stores zeros where
/// `exists` is false; `from` is not read then. The numbers are there when this thread has called wait_for_copies(), and
/// for the other threads of the block after the next __syncthreads().
__device__ __forceinline__ void begin_copy(std::uint32_t* to, const Bfloat16* from, bool exists) {
#ifdef __CUDACC__
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;"
               :
               : "r"(static_cast<std::uint32_t>(__cvta_generic_to_shared(to))), "l"(from), "r"(exists ? 16 : 0)
               : "memory");
#else
  emulation::copy_later(to, exists ? from : nullptr);
#endif
}
/// Waits for all copies that this thread has begun.
__device__ __forceinline__ void wait_for_copies() {
#ifdef __CUDACC__
  asm volatile("cp.async.wait_all;" : : : "memory");
#else
  emulation::wait_for_copies();
#endif
}

}  // namespace heed
