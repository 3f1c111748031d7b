// Products of matrices of 8-bit integers, for inference: Y = X W^T + b.
//
// The problem: most of the time of a small batch goes into reading the weights from memory. The idea: each row of W and
// each row of X is stored as integers from -127 to 127 with one float32 scale for the row, a quarter of the memory, and
// the CPU multiplies the integers. The scale of a row is its largest absolute value divided by 127; an element is
// divided by the scale and rounded to the nearest integer.
//
// An example with one row each:
//   x = (1.27, -0.64)    scale 1.27 / 127 = 0.01    integers (127, -64)
//   w = (2.54, 1.005)    scale 2.54 / 127 = 0.02    integers (127, 50), since 1.005 / 0.02 = 50.25
//   x . w = (127 * 127 - 64 * 50) * 0.01 * 0.02 = 12929 * 0.0002 = 2.5858
// The exact product is 2.5826; the difference comes from 1.005, which became 50 * 0.02 = 1.
//
// Sums of integers are exact in every order. A row of Y is therefore the same, bit for bit, on every CPU and whatever
// the other rows of X are. gemm_int8.cpp explains how the integers are laid out for the CPU's instructions.
#pragma once

#include <cstddef>
#include <cstdint>

#include "heed/tensor/arena.h"

namespace heed {

/// The columns of Y = X W^T + b may be computed in ranges, for example by several threads. A range must begin at a
/// multiple of this number.
constexpr std::int64_t kInt8Columns = 32;

/// The largest k (length of a row of W) that a product can have. The sum of k bytes, each at most 255, must fit into 32
/// bits.
constexpr std::int64_t kInt8MostDepth = std::int64_t{1} << 23;
static_assert(kInt8MostDepth * 255 < std::int64_t{1} << 31);

/// A weight W [n, k] as 8-bit integers: each row w is divided by its scale max |w| / 127 and rounded to the nearest
/// integers. quantize_weight() writes the bytes.
struct Int8Weight {
  /// The int8_weight_bytes(n, k) bytes of the weight, which begin at a cache line.
  const std::byte* data = nullptr;
};
/// Returns the number of bytes that a weight [n, k] takes as 8-bit integers, including the scale and the sum of each
/// row.
std::int64_t int8_weight_bytes(std::int64_t n, std::int64_t k);
/// Converts the rows begin ... end - 1 of a weight [n, k] to 8-bit integers at `out`, which has int8_weight_bytes(n, k)
/// bytes for the whole weight and starts at a cache line. `rows` points to row `begin`, with `stride` elements from row
/// to row. `begin` must be a multiple of kInt8Columns, `end` such a multiple or n. Throws Error where k is larger than
/// kInt8MostDepth.
void quantize_weight(std::int64_t n, std::int64_t k, std::int64_t begin, std::int64_t end, const float* rows,
                     std::int64_t stride, std::byte* out);

/// The part of a row of X that products without VNNI add separately (gemm_int8.cpp explains why): a step of four
/// numbers along k where this part is not 0.
struct Int8RestStep {
  std::int32_t k;     ///< the first of the four numbers
  std::int32_t four;  ///< the four numbers, one in each byte, the first in the lowest
};
struct Int8Rest {
  const Int8RestStep* steps;  ///< [count]
  std::int64_t count;
  std::int32_t start;  ///< -128 times the sum of the row's integers, which undoes the 128 added to W
};

/// The rows of X as 8-bit integers, each row with its own scale max |x| / 127, for products with any number of weights.
/// The integers live as long as the memory of the arena in which they were made.
struct Int8Activations {
  /// The integers row by row, a byte each, filled up to a multiple of 64 bytes: where 128 is added to X, unsigned and
  /// plus 128; otherwise signed and without the parts that `rests` holds.
  const std::uint8_t* values = nullptr;
  /// [rows]: the scale of each row.
  const float* scales = nullptr;
  std::int64_t rows = 0, k = 0;
  /// [rows]: the rest of each row, where 128 is added to W; otherwise null.
  const Int8Rest* rests = nullptr;
};
/// Converts X, which has `rows` rows of k elements and `stride` elements from row to row, to 8-bit integers in memory
/// of `arena`.
Int8Activations quantize_activations(Arena& arena, std::int64_t rows, std::int64_t k, const float* x,
                                     std::int64_t stride);

/// Computes the columns begin ... end - 1 of Y = X W^T + b from 8-bit integers and writes them to `y`, column `begin`
/// first. The sums are exact integers. A row of Y therefore depends on its row of X alone and is the same, bit for bit,
/// with every instruction set: vectors of 128 bits, AVX2, AVX-512, the dot products of AVX-VNNI or AVX-512 VNNI, the
/// tiles of AMX.
///
/// Shapes: x [rows, k], weight [n, k], bias [n] or null, y `rows` rows of end - begin elements with `y_stride` elements
/// from row to row; k at most kInt8MostDepth. `begin` must be a multiple of kInt8Columns, `end` such a multiple or n. A
/// row of X with a number that is not finite gives a row of Y that is not finite.
void gemm_int8(const Int8Activations& x, std::int64_t n, std::int64_t begin, std::int64_t end, Int8Weight weight,
               const float* bias, float* y, std::int64_t y_stride);

}  // namespace heed
