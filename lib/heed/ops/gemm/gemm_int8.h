#pragma once

#include <cstddef>
#include <cstdint>

#include "heed/tensor/arena.h"

namespace heed {

/// Columns of Y that pieces of a product begin at multiples of.
constexpr std::int64_t kInt8Columns = 32;

/// The maximum of k: the sum of one row of numbers up to 255 must fit into 32 bits.
constexpr std::int64_t kInt8MostDepth = std::int64_t{1} << 23;
static_assert(kInt8MostDepth * 255 < std::int64_t{1} << 31);

/// A weight W [n, k] as 8-bit integers, each row w divided by its scale max |w| / 127 and rounded to the nearest. Made
/// by quantize_weight, which fills the rows from `begin` (a multiple of kInt8Columns) to before `end` (another one, or
/// n) of int8_weight_bytes(n, k) bytes that start at a cache line; `rows` is row `begin` and what follows.
struct Int8Weight {
  const std::byte* data = nullptr;
};
std::int64_t int8_weight_bytes(std::int64_t n, std::int64_t k);
void quantize_weight(std::int64_t n, std::int64_t k, std::int64_t begin, std::int64_t end, const float* rows,
                     std::int64_t stride, std::byte* out);

/// Rows of X as 8-bit integers, each by its own scale, likewise: once for any number of weights. Lives in the arena of
/// its making.
struct Int8Activations {
  const std::uint8_t* values = nullptr;
  const float* scales = nullptr;
  std::int64_t rows = 0, k = 0;
};
Int8Activations quantize_activations(Arena& arena, std::int64_t rows, std::int64_t k, const float* x,
                                     std::int64_t stride);

/// Y = X W^T + b. Sums are exact integers, so a row of Y depends on its row of X alone, and is the same, bit for bit,
/// with every instruction set: plain C++, AVX2, the dot products of AVX-VNNI or AVX-512 VNNI, AMX's tiles.
///
/// Shapes: x [rows, k], weight [n, k], bias [n] or null, y `rows` rows of n elements, `y_stride` elements from row to
/// row; k at most kInt8MostDepth. Numbers that are not finite give rows that are not finite. Of Y, the columns from
/// `begin` (a multiple of kInt8Columns) to before `end` are made, the first of them at `y`.
void gemm_int8(const Int8Activations& x, std::int64_t n, std::int64_t begin, std::int64_t end, Int8Weight weight,
               const float* bias, float* y, std::int64_t y_stride);

}  // namespace heed
