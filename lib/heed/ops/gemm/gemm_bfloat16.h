// Products of matrices that are rounded to bfloat16, by the CPU's own instructions.
//
// bfloat16 is the upper half of a float32: the same range, but only 8 significant bits. One instruction multiplies at
// least twice as many bfloat16 numbers as float32 numbers, and adds the products in float32. The instructions read
// their operands in tiles (gemm_bfloat16.cpp explains the layout). A product therefore has two steps:
//
//   1. bfloat16_left_operand(A) and bfloat16_tiles(B) round each matrix and lay it out in tiles. A matrix that takes
//      part in several products is prepared once.
//   2. gemm_bfloat16() multiplies the tiles and writes C in float32, stored row by row as usual.
//
// An example of the rounding: 1.01 becomes 1.0078125, the nearest number with 8 significant bits, so that the product
// 1.01 * 3 gives 3.0234375 and not 3.03. The products are summed in float32, so a long sum rounds no more than usual.
#pragma once

#include <cstdint>

#include "heed/ops/gemm/gemm.h"

namespace heed {

/// The right matrix B [k, n] of products, rounded to bfloat16 and laid out in tiles, for products with any number of
/// left matrices. The tiles live as long as the memory of the arena in which they were made.
struct Bfloat16Tiles {
  /// 32-bit words of two bfloat16 numbers each; the first word begins at a cache line.
  const std::uint32_t* tiles = nullptr;
  std::int64_t k = 0, n = 0;  ///< the numbers of rows and columns of B
};
/// Rounds B [k, n] to bfloat16 and lays it out in tiles, in memory of `arena`.
Bfloat16Tiles bfloat16_tiles(Arena& arena, std::int64_t k, std::int64_t n, GemmOperand<float> b);
Bfloat16Tiles bfloat16_tiles(Arena& arena, std::int64_t k, std::int64_t n, GemmOperand<Bfloat16> b);

/// Returns the number of 32-bit words that the tiles of a right matrix B [k, n] take.
std::int64_t bfloat16_tile_words(std::int64_t k, std::int64_t n);
/// Rounds B [k, n] and lays it out in tiles at `memory`, which has bfloat16_tile_words(k, n) words and begins at a
/// cache line.
Bfloat16Tiles bfloat16_tiles(std::uint32_t* memory, std::int64_t k, std::int64_t n, GemmOperand<float> b);

/// The left matrix A [m, k] of products, rounded to bfloat16 and laid out in tiles, for products with any number of
/// right matrices. The tiles live as long as the memory of the arena in which they were made.
struct Bfloat16LeftOperand {
  /// 32-bit words of two bfloat16 numbers each; the first word begins at a cache line.
  const std::uint32_t* tiles = nullptr;
  std::int64_t m = 0, k = 0;  ///< the numbers of rows and columns of A
  /// Whether each tile is stored transposed. This is so where the transpose of A is in memory and the CPU multiplies
  /// with AVX-512; AMX cannot read such tiles.
  bool tiles_transposed = false;
};
/// Rounds A [m, k] to bfloat16 and lays it out in tiles, in memory of `arena`.
Bfloat16LeftOperand bfloat16_left_operand(Arena& arena, std::int64_t m, std::int64_t k, GemmOperand<float> a);
Bfloat16LeftOperand bfloat16_left_operand(Arena& arena, std::int64_t m, std::int64_t k, GemmOperand<Bfloat16> a);

/// A gradient dz [rows, columns], which is the left matrix of two products: as it is, and transposed (in a layer y = x
/// W^T these are dx = dz W and dW = dz^T x). It is rounded and laid out for both at once, some rows at a time, for
/// example as soon as they have been computed and while they are in the cache.
class Bfloat16Gradient {
 public:
  /// Takes memory of `arena` for the tiles of the transpose. dz is dy [rows, columns], or, where `kept` [rows, columns]
  /// is not null, the gradient of kept = max(0, z): dy where `kept` is not 0, and 0 elsewhere. Nothing is read yet.
  Bfloat16Gradient(Arena& arena, std::int64_t rows, std::int64_t columns, const float* dy, const Bfloat16* kept);

  /// The number of rows of each call of add() must be a multiple of this number, but that of the last one.
  static constexpr std::int64_t kPart = 32;
  /// Lays out the rows from `begin` to `end` - 1. Returns them as a left matrix [end - begin, columns], in memory of
  /// `arena`. Where `sums` [columns] is not null, adds up the columns of these rows in float32: sums[j] += dz[r, j].
  Bfloat16LeftOperand add(Arena& arena, std::int64_t begin, std::int64_t end, float* sums);

  /// Returns the transpose of dz as a left matrix [columns, rows]. All rows must have been added.
  Bfloat16LeftOperand transposed() const;

 private:
  std::int64_t rows_ = 0, columns_ = 0;
  const float* dy_ = nullptr;
  const Bfloat16* kept_ = nullptr;
  std::uint32_t* tiles_ = nullptr;  // of the transpose
};

/// Rounds n numbers to bfloat16: out[i] = x[i], rounded exactly as the products round their operands. Denormal numbers
/// become zero.
void convert_to_bfloat16(const float* x, std::int64_t n, Bfloat16* out);
/// Rounds the rows of x [rows, n] in the same way; they begin `stride` elements apart, and the rounded rows
/// `out_stride`.
void convert_to_bfloat16(const float* x, std::int64_t rows, std::int64_t n, std::int64_t stride, Bfloat16* out,
                         std::int64_t out_stride);
/// The same for kernels that are templates: no result in double precision is stored as bfloat16.
inline void convert_to_bfloat16(const double*, std::int64_t, Bfloat16*) {}
inline void convert_to_bfloat16(const double*, std::int64_t, std::int64_t, std::int64_t, Bfloat16*, std::int64_t) {}

/// Computes C = alpha A B + beta C with A [m, k] and B [k, n] rounded to bfloat16. The sums are float32 and run over k
/// in ascending order, two products at a time. The CPU's instructions take denormal numbers for zero. Allowed only
/// where has_fast_bfloat16() is true: the function uses the dot products of AVX-512 BF16 or the tiles of AMX.
///
/// A row of C does not depend on the other rows or on their number, bit for bit, with one exception: for alpha 1 and
/// beta 1 with AMX, the sums of a whole block of 32 x 32 elements begin with C, whereas in an incomplete block at the
/// edge C is added to the sums at the end.
void gemm_bfloat16(Arena& scratch, std::int64_t m, float alpha, GemmOperand<float> a, const Bfloat16Tiles& b,
                   float beta, float* c, std::int64_t c_stride);
void gemm_bfloat16(float alpha, const Bfloat16LeftOperand& a, const Bfloat16Tiles& b, float beta, float* c,
                   std::int64_t c_stride);

/// What a product does with each element of C before it stores C: C = f(A B + bias). Another pass over C, which may not
/// be in the cache any more, would take longer.
struct Bfloat16Finish {
  const float* bias = nullptr;  ///< [n], or null, which adds nothing
  bool relu = false;            ///< f(z) is max(0, z), otherwise z
  /// Where not null, C is stored here, rounded as convert_to_bfloat16() does, with the same number of elements from row
  /// to row.
  Bfloat16* rounded = nullptr;
};
/// Computes C = f(A B + bias) with A [m, k] and B [k, n] as the other gemm_bfloat16() computes A B. `c` is not used
/// where `finish` says that C is stored as bfloat16.
void gemm_bfloat16(const Bfloat16LeftOperand& a, const Bfloat16Tiles& b, const Bfloat16Finish& finish, float* c,
                   std::int64_t c_stride);

}  // namespace heed
