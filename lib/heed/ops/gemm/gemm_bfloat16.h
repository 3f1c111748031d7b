#pragma once

#include <cstdint>

#include "heed/ops/gemm/gemm.h"

namespace heed {

/// The right side B [k, n] of products, rounded to bfloat16 and laid in tiles: once for any number of left sides.
/// Lives in the arena of its making.
struct Bfloat16Tiles {
  const std::uint32_t* tiles = nullptr;
  std::int64_t k = 0, n = 0;
};
Bfloat16Tiles bfloat16_tiles(Arena& arena, std::int64_t k, std::int64_t n, GemmOperand<float> b);
Bfloat16Tiles bfloat16_tiles(Arena& arena, std::int64_t k, std::int64_t n, GemmOperand<Bfloat16> b);

/// The same in given memory of so many words that starts at a cache line.
std::int64_t bfloat16_tile_words(std::int64_t k, std::int64_t n);
Bfloat16Tiles bfloat16_tiles(std::uint32_t* memory, std::int64_t k, std::int64_t n, GemmOperand<float> b);

/// The left side A [m, k], likewise.
struct Bfloat16LeftOperand {
  const std::uint32_t* tiles = nullptr;
  std::int64_t m = 0, k = 0;
};
Bfloat16LeftOperand bfloat16_left_operand(Arena& arena, std::int64_t m, std::int64_t k, GemmOperand<float> a);
Bfloat16LeftOperand bfloat16_left_operand(Arena& arena, std::int64_t m, std::int64_t k, GemmOperand<Bfloat16> a);

/// out[i] = x[i] rounded to bfloat16, as the products round their operands: denormal numbers become zero.
void convert_to_bfloat16(const float* x, std::int64_t n, Bfloat16* out);

/// C = alpha A B + beta C with A [m, k] rounded to bfloat16 and sums in float32, k in pairs in ascending order. A row
/// of C does not depend on the other rows or their number, bit for bit, but for alpha 1 and beta 1 with AMX: the sums
/// of whole blocks of 32 rows then begin with C, and C is added to those of the other rows at the end. As the hardware
/// does, takes denormal numbers for zero. By the dot products of AVX-512 BF16 or AMX's tiles; only where
/// has_fast_bfloat16().
void gemm_bfloat16(Arena& scratch, std::int64_t m, float alpha, GemmOperand<float> a, const Bfloat16Tiles& b,
                   float beta, float* c, std::int64_t c_stride);
void gemm_bfloat16(float alpha, const Bfloat16LeftOperand& a, const Bfloat16Tiles& b, float beta, float* c,
                   std::int64_t c_stride);

}  // namespace heed
