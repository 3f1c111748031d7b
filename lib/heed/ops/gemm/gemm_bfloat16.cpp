// How C = A B is computed from tiles of bfloat16 numbers.
//
// The CPU's instructions do not multiply single bfloat16 numbers. They multiply pairs: a 32-bit word of A holds two
// neighbours along k (the dimension over which a product sums), a word of B holds the matching two, and one step adds
// a0 b0 + a1 b1 to a float32 sum. A tile is a square of 16 x 16 such words (1 KB):
//   - a tile of A has 16 rows of A; word p of a row is the pair (A[row][2p], A[row][2p + 1]), so a tile spans 32
//     numbers along k;
//   - a tile of B has 16 rows of pairs; word c of row p is the pair (B[2p][c], B[2p + 1][c]).
// AMX multiplies two whole tiles with one instruction. AVX-512's dot products use the same tiles, one row at a time;
// they read the words of A one by one, so that a tile of A may also be stored transposed: word r of row p is then the
// pair (A[r][2p], A[r][2p + 1]). A matrix A whose transpose is in memory gives such tiles without further work.
//
// An example with tiles of 2 x 2 words, so that k is 4:
//
//   A = 1 2 3 4     B = 1 0     tile of A = (1,2) (3,4)     tile of B = (1,0) (0,1)
//       5 6 7 8         0 1                 (5,6) (7,8)                 (2,0) (0,2)
//                       2 0
//                       0 2
//
// The tile of C is an ordinary matrix product of the two tiles, where a product of two words is a dot product:
//   C[0][0] = (1,2).(1,0) + (3,4).(2,0) = 1 + 6 = 7       C[0][1] = (1,2).(0,1) + (3,4).(0,2) = 2 + 8 = 10
//   C[1][0] = (5,6).(1,0) + (7,8).(2,0) = 5 + 14 = 19     C[1][1] = (5,6).(0,1) + (7,8).(0,2) = 6 + 16 = 22
//
// In memory the tiles of the same 16 rows of A, or of the same 16 columns of B, follow each other along k, 1 KB each.
// Tiles at the edges are filled up with zeros. AMX computes C in blocks of 2 x 2 tiles (32 x 32 elements), because each
// tile that is loaded then serves two products, and AVX-512 in blocks of eight rows and two or three tiles of B. The
// number of tiles of rows (A) or columns (B) is therefore always even.
#include "heed/ops/gemm/gemm_bfloat16.h"

#include <algorithm>

#include "heed/base/error.h"
#include "heed/base/instruction_set.h"
#include "heed/base/x86.h"
#include "heed/ops/gemm/tile_shapes.h"
#include "heed/ops/prefetch.h"

#if HEED_X86
// The functions between this line and the matching "pop" are compiled for AVX-512 BF16 and AMX, whatever instruction
// set the compiler's options choose.
#if defined(__clang__)
#pragma clang attribute push(__attribute__((target("avx512f,avx512bw,avx512vl,avx512bf16,amx-tile,amx-bf16,prfchw"))), \
                             apply_to = function)
#else
#pragma GCC push_options
#pragma GCC target("avx512f,avx512bw,avx512vl,avx512bf16,amx-tile,amx-bf16,prfchw")
#endif

namespace heed {
namespace {

// A tile is the square of 32-bit words that the CPU multiplies at once: kSide rows of kSide words, kTile words in all.
// A word holds two bfloat16 numbers, so a tile spans kDepth numbers along k, the dimension over which a product sums.
constexpr std::int64_t kSide = 16, kDepth = 32, kTile = kSide * kSide;
// The number of rows and columns of a block of 2 x 2 tiles of C, which AMX computes at a time.
constexpr std::int64_t kBlock = 2 * kSide;
// The number of rows of C that AVX-512 computes at a time.
constexpr int kBlockRows = 8;
// The number of bytes in a line of the cache.
constexpr std::int64_t kLine = 64;

/// Returns how many tiles, each `tile` elements long, are needed to cover `size` elements.
std::int64_t tiles_over(std::int64_t size, std::int64_t tile) {
  return (size + tile - 1) / tile;
}

/// Returns the mask that selects the first `count` of a vector's 16 lanes; `count` may be negative or more than 16.
__mmask16 first(std::int64_t count) {
  return static_cast<__mmask16>((std::uint32_t{1} << std::clamp<std::int64_t>(count, 0, kSide)) - 1);
}

/// Rounds 32 float32 numbers to bfloat16. Returns the 16 numbers of `low`, followed by the 16 numbers of `high`.
__m512i rounded(__m512 low, __m512 high) {
  return reinterpret_cast<__m512i>(_mm512_cvtne2ps_pbh(high, low));
}

/// Loads kDepth (32) numbers of a row x as bfloat16. With `whole`, all are there; otherwise the numbers from index
/// `count` on are not read, and zeros replace them.
template <bool whole>
__m512i load_row(const float* x, std::int64_t count) {
  const __mmask16 low = whole ? 0xFFFF : first(count), high = whole ? 0xFFFF : first(count - kSide);
  return rounded(_mm512_maskz_loadu_ps(low, x), _mm512_maskz_loadu_ps(high, x + kSide));
}
template <bool whole>
__m512i load_row(const Bfloat16* x, std::int64_t count) {
  if (whole) return _mm512_loadu_si512(x);
  return _mm512_maskz_loadu_epi16(first(count) | static_cast<__mmask32>(first(count - kSide)) << kSide, x);
}

/// Loads kSide (16) numbers from row `x` and then kSide numbers from row `y`, all as bfloat16. With `whole`, all are
/// there; otherwise zeros replace the numbers from index `count` on, and all numbers of `y` where `y` is null.
template <bool whole>
__m512i load_two(const float* x, const float* y, std::int64_t count) {
  const __mmask16 mask = whole ? 0xFFFF : first(count);
  return rounded(_mm512_maskz_loadu_ps(mask, x), whole || y ? _mm512_maskz_loadu_ps(mask, y) : _mm512_setzero_ps());
}
template <bool whole>
__m512i load_two(const Bfloat16* x, const Bfloat16* y, std::int64_t count) {
  const __mmask16 mask = whole ? 0xFFFF : first(count);
  const __m256i low = _mm256_maskz_loadu_epi16(mask, x);
  const __m256i high = whole || y ? _mm256_maskz_loadu_epi16(mask, y) : _mm256_setzero_si256();
  return _mm512_inserti64x4(_mm512_castsi256_si512(low), high, 1);
}

/// Makes a tile, 16 rows of 16 pairs of bfloat16 numbers, from up to 16 stored rows of x. Row r of the tile holds the
/// pairs of neighbours in row r of x. `rows` and `columns` are the numbers of rows and columns that x has from this
/// address on. With `whole`, they fill the tile; otherwise zeros fill the rest. Calls put(r, row) for each row.
template <bool whole, class X, class Put>
void tile_of_rows(const X* x, std::int64_t stride, std::int64_t rows, std::int64_t columns, Put put) {
#pragma GCC unroll 16
  for (std::int64_t r = 0; r < kSide; ++r)
    put(r, whole || r < rows ? load_row<whole>(x + r * stride, columns) : _mm512_setzero_si512());
}

/// Makes a tile, 16 rows of 16 pairs of bfloat16 numbers, from up to 32 stored rows of x. Row p of the tile holds pairs
/// of numbers that lie one above the other in the rows 2p and 2p + 1 of x. `rows` and `columns` are the numbers of rows
/// and columns that x has from this address on. With `whole`, they fill the tile; otherwise zeros fill the rest. Calls
/// put(p, row) for each row.
template <bool whole, class X, class Put>
void tile_of_row_pairs(const X* x, std::int64_t stride, std::int64_t rows, std::int64_t columns, Put put) {
  const __m512i interleave = _mm512_set_epi16(31, 15, 30, 14, 29, 13, 28, 12, 27, 11, 26, 10, 25, 9, 24, 8, 23, 7, 22,
                                              6, 21, 5, 20, 4, 19, 3, 18, 2, 17, 1, 16, 0);
#pragma GCC unroll 16
  for (std::int64_t p = 0; p < kSide; ++p) {
    const X* const row = x + 2 * p * stride;
    const X* const next = whole || 2 * p + 1 < rows ? row + stride : nullptr;
    put(p, whole || 2 * p < rows ? _mm512_permutexvar_epi16(interleave, load_two<whole>(row, next, columns))
                                 : _mm512_setzero_si512());
  }
}

/// Transposes a tile of 16 x 16 words in place. Each step exchanges larger groups of words between registers.
void transpose(__m512i t[kSide]) {
  __m512i u[kSide];
  for (int i = 0; i < 16; i += 2) {
    u[i] = _mm512_unpacklo_epi32(t[i], t[i + 1]);
    u[i + 1] = _mm512_unpackhi_epi32(t[i], t[i + 1]);
  }
  for (int i = 0; i < 16; i += 4) {
    t[i] = _mm512_unpacklo_epi64(u[i], u[i + 2]);
    t[i + 1] = _mm512_unpackhi_epi64(u[i], u[i + 2]);
    t[i + 2] = _mm512_unpacklo_epi64(u[i + 1], u[i + 3]);
    t[i + 3] = _mm512_unpackhi_epi64(u[i + 1], u[i + 3]);
  }
  for (int i = 0; i < 4; ++i) {
    u[i] = _mm512_shuffle_i32x4(t[i], t[i + 4], 0x88);
    u[i + 4] = _mm512_shuffle_i32x4(t[i], t[i + 4], 0xdd);
    u[i + 8] = _mm512_shuffle_i32x4(t[i + 8], t[i + 12], 0x88);
    u[i + 12] = _mm512_shuffle_i32x4(t[i + 8], t[i + 12], 0xdd);
  }
  for (int i = 0; i < 4; ++i) {
    t[i] = _mm512_shuffle_i32x4(u[i], u[i + 8], 0x88);
    t[i + 4] = _mm512_shuffle_i32x4(u[i + 4], u[i + 12], 0x88);
    t[i + 8] = _mm512_shuffle_i32x4(u[i], u[i + 8], 0xdd);
    t[i + 12] = _mm512_shuffle_i32x4(u[i + 4], u[i + 12], 0xdd);
  }
}

/// Returns the number of 32-bit words in all tiles of a matrix A or B. `size` is the number of rows of A or of columns
/// of B. The number of tiles that cover `size` is rounded up to an even number, because a block of C takes at least two
/// tiles of B, and with AMX two tiles of A.
std::int64_t words_of_tiles(std::int64_t size, std::int64_t k) {
  return tiles_over(size, kBlock) * 2 * tiles_over(k, kDepth) * kTile;
}

/// A matrix A or B of a product C = A B, from which tiles are made.
template <class X>
struct Stored {
  const X* x;           ///< the stored matrix
  std::int64_t stride;  ///< the number of elements from one stored row to the next
  /// The number of rows of A or of columns of B, and the length of the sums.
  std::int64_t size, k;
  /// Whether a stored row holds the k numbers of one sum: whether A itself or the transpose of B is stored.
  bool along_rows;
  /// Whether each tile is transposed after it has been read from the rows of x.
  bool transposes;
};

/// Rounds a matrix A or B of a product C = A B to bfloat16 and lays it out at `tiles`. Returns `tiles`.
template <class X>
const std::uint32_t* make_tiles(const Stored<X>& stored, std::uint32_t* const tiles) {
  const X* const x = stored.x;
  const std::int64_t stride = stored.stride, size = stored.size, k = stored.k;
  const bool along_rows = stored.along_rows, transposes = stored.transposes;
  const std::int64_t across = tiles_over(size, kBlock) * 2, depth = tiles_over(k, kDepth);
  const auto make = [&](std::int64_t i, std::int64_t j) {
    std::uint32_t* const out = tiles + (i * depth + j) * kTile;
    __m512i tile[kSide];
    const auto put = [&](std::int64_t r, __m512i row) {
      if (transposes)
        tile[r] = row;
      else
        _mm512_store_si512(out + r * kSide, row);
    };
    if (along_rows) {
      const X* const from = x + i * kSide * stride + j * kDepth;
      const std::int64_t rows = size - i * kSide, columns = k - j * kDepth;
      prefetch_rows(from + kSide * stride, std::min(kSide, rows - kSide), kDepth, stride);
      if (rows >= kSide && columns >= kDepth)
        tile_of_rows<true>(from, stride, rows, columns, put);
      else
        tile_of_rows<false>(from, stride, rows, columns, put);
    } else {
      const X* const from = x + j * kDepth * stride + i * kSide;
      const std::int64_t rows = k - j * kDepth, columns = size - i * kSide;
      prefetch_rows(from + kDepth * stride, std::min(kDepth, rows - kDepth), kSide, stride);
      if (rows >= kDepth && columns >= kSide)
        tile_of_row_pairs<true>(from, stride, rows, columns, put);
      else
        tile_of_row_pairs<false>(from, stride, rows, columns, put);
    }
    if (!transposes) return;
    transpose(tile);
    for (std::int64_t r = 0; r < kSide; ++r) _mm512_store_si512(out + r * kSide, tile[r]);
  };
  // The tiles are made in the order in which the matrix's rows are stored, because the CPU prefetches memory that is
  // read in order. It does not do so for the rows of a tile, which are short: each tile requests those of the tile that
  // lies below.
  if (along_rows)
    for (std::int64_t i = 0; i < across; ++i)
      for (std::int64_t j = 0; j < depth; ++j) make(i, j);
  else
    for (std::int64_t j = 0; j < depth; ++j)
      for (std::int64_t i = 0; i < across; ++i) make(i, j);
  return tiles;
}

/// Where the tiles of a square of 32 x 32 numbers of a left matrix begin, and the number of words from there to the
/// tile of the next 16 rows of the left matrix.
struct SquareTiles {
  std::uint32_t* first;
  std::int64_t next;
};

/// Rounds a square of 32 x 32 numbers of a gradient dz and lays it out twice: in `rows` as a part of dz, and in
/// `columns` as a part of the transpose of dz, in tiles that are stored transposed unless `transposes` is true. dz is
/// dy, or, with `relu`, dy where `kept` is not 0, and 0 elsewhere; both are `stride` elements from row to row. Adds the
/// sums of dz's columns to `sums`, where it is not null. dz has `height` rows and `width` columns from this address on;
/// with `whole`, they fill the square, otherwise zeros fill the rest.
template <bool whole, bool relu>
void lay_out_square(const float* dy, const Bfloat16* kept, std::int64_t stride, std::int64_t height, std::int64_t width,
                    SquareTiles rows, SquareTiles columns, bool transposes, float* sums) {
  // The rows x and y of 32 numbers become 32 pairs (x[c], y[c]), 16 in each of two vectors.
  const __m512i left_pairs = _mm512_set_epi16(47, 15, 46, 14, 45, 13, 44, 12, 43, 11, 42, 10, 41, 9, 40, 8, 39, 7, 38,
                                              6, 37, 5, 36, 4, 35, 3, 34, 2, 33, 1, 32, 0);
  const __m512i right_pairs = _mm512_add_epi16(left_pairs, _mm512_set1_epi16(kSide));
  const __mmask16 left_mask = whole ? 0xFFFF : first(width), right_mask = whole ? 0xFFFF : first(width - kSide);
  __m512 left_sum = sums ? _mm512_maskz_loadu_ps(left_mask, sums) : _mm512_setzero_ps();
  __m512 right_sum = sums ? _mm512_maskz_loadu_ps(right_mask, sums + kSide) : _mm512_setzero_ps();
  const auto load = [&](std::int64_t r) {
    if (!whole && r >= height) return _mm512_setzero_si512();
    __m512 left = _mm512_maskz_loadu_ps(left_mask, dy + r * stride);
    __m512 right = _mm512_maskz_loadu_ps(right_mask, dy + r * stride + kSide);
    if (relu) {
      const __m512i bits = load_row<whole>(kept + r * stride, width);
      const __mmask32 there = _mm512_test_epi16_mask(bits, bits);
      left = _mm512_maskz_mov_ps(static_cast<__mmask16>(there), left);
      right = _mm512_maskz_mov_ps(static_cast<__mmask16>(there >> kSide), right);
    }
    left_sum = _mm512_add_ps(left_sum, left);
    right_sum = _mm512_add_ps(right_sum, right);
    return rounded(left, right);
  };
  __m512i left[kSide], right[kSide];
  for (std::int64_t p = 0; p < kSide; ++p) {
    const __m512i x = load(2 * p), y = load(2 * p + 1);
    std::uint32_t* const row = rows.first + 2 * p / kSide * rows.next + 2 * p % kSide * kSide;
    _mm512_store_si512(row, x);
    _mm512_store_si512(row + kSide, y);
    left[p] = _mm512_permutex2var_epi16(x, left_pairs, y);
    right[p] = _mm512_permutex2var_epi16(x, right_pairs, y);
    if (transposes) continue;
    _mm512_store_si512(columns.first + p * kSide, left[p]);
    _mm512_store_si512(columns.first + columns.next + p * kSide, right[p]);
  }
  if (sums) {
    _mm512_mask_storeu_ps(sums, left_mask, left_sum);
    _mm512_mask_storeu_ps(sums + kSide, right_mask, right_sum);
  }
  if (!transposes) return;
  transpose(left);
  transpose(right);
  for (std::int64_t p = 0; p < kSide; ++p) {
    _mm512_store_si512(columns.first + p * kSide, left[p]);
    _mm512_store_si512(columns.first + columns.next + p * kSide, right[p]);
  }
}

/// Lays out a square as the other lay_out_square() does; `kept` may be null.
void lay_out_square(const float* dy, const Bfloat16* kept, std::int64_t stride, std::int64_t height, std::int64_t width,
                    SquareTiles rows, SquareTiles columns, bool transposes, float* sums) {
  const auto lay_out = height >= kDepth && width >= kDepth
                           ? (kept ? lay_out_square<true, true> : lay_out_square<true, false>)
                           : (kept ? lay_out_square<false, true> : lay_out_square<false, false>);
  lay_out(dy, kept, stride, height, width, rows, columns, transposes, sums);
}

/// A product C = alpha A B + beta C, where A and B are rounded to bfloat16 and laid out in tiles; or, where `finish` is
/// not null, C = f(A B + bias), with alpha 1 and beta 0.
struct Product {
  /// C has m rows and n columns. Along k, the dimension over which the product sums, A and B have k numbers, in `depth`
  /// tiles.
  std::int64_t m, n, k, depth;
  const std::uint32_t *a, *b;  ///< the tiles of A and of B
  float alpha, beta;
  float* c;
  std::int64_t stride;  ///< the number of elements from one row of C to the next
  const Bfloat16Finish* finish = nullptr;

  /// Whether C is stored as bfloat16, and `c` is not used.
  bool is_rounded() const { return finish && finish->rounded; }

  /// Stores the sums of `rows` rows of a block of C, which begins in row i and column j: `vectors` vectors of sums for
  /// each row. The sums of columns that C does not have are left out. With `whole`, C has all of them, and no store has
  /// a mask: where the memory is not in the cache, stores with a mask take longer, even if the mask selects everything.
  template <bool whole, int rows, int vectors>
  [[gnu::always_inline]] void store(std::int64_t i, std::int64_t j, __m512 (&sums)[rows][vectors]) const {
    // Calls body(sum, column, at, mask) for each vector of sums, which belongs to `column` and the columns after it,
    // and to the elements of C from `at` on. The calls are unrolled, so that the sums stay in the CPU's vectors.
    const auto for_each = [&](auto body) {
#pragma GCC unroll 16
      for (int row = 0; row < rows; ++row)
#pragma GCC unroll 4
        for (int v = 0; v < vectors; ++v) {
          const std::int64_t column = j + v * kSide;
          body(sums[row][v], column, (i + row) * stride + column, first(whole ? kSide : n - column));
        }
    };
    if (finish) {
      const float* const bias = finish->bias;
      Bfloat16* const to = finish->rounded;
      if (bias)
        for_each([&](__m512& sum, std::int64_t column, std::int64_t, __mmask16 mask) {
          sum = _mm512_add_ps(sum, _mm512_maskz_loadu_ps(mask, bias + column));
        });
      if (finish->relu)
        for_each(
            [&](__m512& sum, std::int64_t, std::int64_t, __mmask16) { sum = _mm512_max_ps(sum, _mm512_setzero_ps()); });
      if (to)
        return for_each([&](__m512 sum, std::int64_t, std::int64_t at, __mmask16 mask) {
          _mm256_mask_storeu_epi16(to + at, mask, reinterpret_cast<__m256i>(_mm512_cvtneps_pbh(sum)));
        });
    } else {
      if (alpha != 1)
        for_each([&](__m512& sum, std::int64_t, std::int64_t, __mmask16) {
          sum = _mm512_mul_ps(_mm512_set1_ps(alpha), sum);
        });
      if (beta != 0)
        for_each([&](__m512& sum, std::int64_t, std::int64_t at, __mmask16 mask) {
          sum = _mm512_fmadd_ps(_mm512_set1_ps(beta), _mm512_maskz_loadu_ps(mask, c + at), sum);
        });
    }
    for_each(
        [&](__m512 sum, std::int64_t, std::int64_t at, __mmask16 mask) { _mm512_mask_storeu_ps(c + at, mask, sum); });
  }

  /// Stores the sums `block`, of `rows` rows with `vectors` vectors each, of the block of C that begins in row i and
  /// column j. `block_stride` is the number of sums from row to row. No element outside of C is read or written.
  template <int vectors>
  void store_block(std::int64_t i, std::int64_t j, std::int64_t rows, const float* block,
                   std::int64_t block_stride) const {
    for (std::int64_t r = 0; r < std::min(m - i, rows); ++r) {
      __m512 sums[1][vectors];
      for (int v = 0; v < vectors; ++v) sums[0][v] = _mm512_loadu_ps(block + r * block_stride + v * kSide);
      store<false>(i + r, j, sums);
    }
  }

  /// Returns the address of the element of C in row i and column j, and the number of bytes from a row to the next.
  const char* element(std::int64_t i, std::int64_t j) const {
    const std::int64_t at = i * stride + j;
    return is_rounded() ? reinterpret_cast<const char*>(finish->rounded + at) : reinterpret_cast<const char*>(c + at);
  }
  std::int64_t row_bytes() const {
    return stride * (is_rounded() ? 2 : 4);
  }

  /// Returns the address of the tiles that hold the 16 rows of A from `row` on; `row` is a multiple of 16.
  const std::uint32_t* a_tiles(std::int64_t row) const {
    return a + row / kSide * depth * kTile;
  }
  /// Returns the address of the tiles that hold the 16 columns of B from `column` on; `column` is a multiple of 16.
  const std::uint32_t* b_tiles(std::int64_t column) const {
    return b + column / kSide * depth * kTile;
  }
};

/// The part of the second-level cache that the tiles of a product may take, in bytes: half a megabyte.
constexpr std::int64_t kCached = std::int64_t{512} << 10;

/// Returns for how many columns of C the tiles of B fit into that part, with `tiles` tiles along k: a multiple of
/// `unit`, and at least that many.
std::int64_t cached_columns(std::int64_t tiles, std::int64_t unit) {
  constexpr std::int64_t kWords = kCached / sizeof(std::uint32_t);
  return std::max<std::int64_t>(1, kWords * kSide / (std::max<std::int64_t>(1, tiles) * kTile * unit)) * unit;
}

/// Requests the tiles of the next 32 rows of A while the present 32 rows are multiplied: a few lines of the cache in
/// each step along k.
class NextTiles {
 public:
  /// Requests nothing.
  NextTiles() = default;
  /// The present rows begin with row i. `at` is the number of the block of C that is computed, among the `blocks`
  /// blocks of the present rows, and `begin` the first tile along k.
  NextTiles(const Product& p, std::int64_t i, std::int64_t at, std::int64_t blocks, std::int64_t begin) {
    if (p.m - i <= kBlock) return;
    // The next rows have two tiles. The first half of the blocks requests the 16 lines of one, a few in each block, and
    // the other half those of the other.
    const std::int64_t half = (blocks + 1) / 2, tile = at < half ? 0 : 1;
    const std::int64_t number = at - tile * half, share = tile == 0 ? half : blocks - half;
    const std::int64_t first = kSide * number / share;
    count_ = std::max<std::int64_t>(1, kSide * (number + 1) / share - first);
    line_ = p.a_tiles(i + kBlock + tile * kSide) + begin * kTile + first * kSide;
  }

  /// Requests the lines that belong to the next tile along k.
  void step() {
    for (std::int64_t line = 0; line < count_; ++line)
      _mm_prefetch(reinterpret_cast<const char*>(line_ + line * kSide), _MM_HINT_T1);
    line_ += kTile;
  }

 private:
  const std::uint32_t* line_ = nullptr;
  std::int64_t count_ = 0;
};

/// Computes a block of C with AVX-512 BF16, whose instruction computes dot products of pairs: kBlockRows rows from row
/// i on, and `vectors` tiles of B (16 columns each) from column j on. `tiles_transposed` says whether each tile of A is
/// stored transposed. Only a product with such tiles requests those of the next rows.
template <bool tiles_transposed, int vectors>
void multiply_block_avx512(const Product& p, std::int64_t i, std::int64_t j, NextTiles next_tiles) {
  // The number of words in a tile of A from one row of A to the next, and from one pair of a row to the next.
  constexpr std::int64_t kNextRow = tiles_transposed ? 1 : kSide, kNextPair = tiles_transposed ? kSide : 1;
  const std::int64_t next = p.depth * kTile;  // the number of words from a tile to the tile of the next 16 columns of B
  const std::uint32_t* a = p.a_tiles(i / kSide * kSide) + i % kSide * kNextRow;
  const std::uint32_t* b = p.b_tiles(j);
  const bool whole = p.m - i >= kBlockRows && p.n - j >= vectors * kSide;
  const std::int64_t row_bytes = p.row_bytes();
  const char* requested = p.element(i, j);
  const char* const last_requested = requested + (whole ? kBlockRows * row_bytes : 0);
  __m512 sums[kBlockRows][vectors];
  for (auto& row : sums)
    for (__m512& sum : row) sum = _mm512_setzero_ps();
  // The pairs that fill up the last tile are left out.
  for (std::int64_t pairs = tiles_over(p.k, 2); pairs > 0; pairs -= kSide, a += kTile, b += kTile) {
    // Each step requests two rows of C, because all requests at once would hold up the loads of tiles. For rows of
    // bfloat16 these are more lines than needed, but their number would be one more variable in this loop, which
    // already uses all general registers of the CPU.
    if (requested != last_requested)
      for (int row = 0; row < 2; ++row, requested += row_bytes)
        for (int v = 0; v < vectors; ++v) _mm_prefetch(requested + v * kLine, _MM_HINT_ET0);
    if (tiles_transposed) next_tiles.step();
    for (std::int64_t k = 0; k < std::min(pairs, kSide); ++k) {
      __m512bh columns[vectors];
      for (int v = 0; v < vectors; ++v)
        columns[v] = reinterpret_cast<__m512bh>(_mm512_load_si512(b + v * next + k * kSide));
      for (int row = 0; row < kBlockRows; ++row) {
        const auto word = static_cast<int>(a[row * kNextRow + k * kNextPair]);
        const auto pair = reinterpret_cast<__m512bh>(_mm512_set1_epi32(word));
        for (int v = 0; v < vectors; ++v) sums[row][v] = _mm512_dpbf16_ps(sums[row][v], pair, columns[v]);
      }
    }
  }
  if (whole) return p.store<true>(i, j, sums);
  alignas(64) float block[kBlockRows][vectors * kSide];
#pragma GCC unroll 16
  for (int row = 0; row < kBlockRows; ++row)
#pragma GCC unroll 4
    for (int v = 0; v < vectors; ++v) _mm512_store_ps(&block[row][v * kSide], sums[row][v]);
  p.store_block<vectors>(i, j, kBlockRows, &block[0][0], vectors * kSide);
}

/// Computes the product with AVX-512 BF16, in blocks of eight rows and three tiles of B, whose 24 sums occupy most of
/// the CPU's 32 vectors; where three tiles would leave a single one, in blocks of two tiles. The blocks are ordered so
/// that A's tiles come from the first-level cache and B's tiles from the second-level cache: 32 rows of C are computed
/// over some columns, from left to right, before the next 32 rows. The blocks do not run from top to bottom, because
/// writes to rows that lie a multiple of 4 kB apart slow each other down.
template <bool tiles_transposed>
void multiply_avx512(const Product& p) {
  // The tiles of the transpose of a large gradient have left the second-level cache before the product reads them.
  const bool requests = tiles_transposed && p.m * p.k * static_cast<std::int64_t>(sizeof(Bfloat16)) > kCached;
  const std::int64_t columns = cached_columns(p.depth, 6 * kSide);
  for (std::int64_t first = 0; first < p.n; first += columns) {
    const std::int64_t end = std::min(p.n, first + columns);
    const std::int64_t blocks = tiles_over(tiles_over(end - first, kSide), 3) * (kBlock / kBlockRows);
    for (std::int64_t i = 0; i < p.m; i += kBlock) {
      std::int64_t block = 0;
      for (std::int64_t j = first; j < end;) {
        const std::int64_t tiles = tiles_over(end - j, kSide);
        const bool three = tiles == 3 || tiles > 4;
        for (std::int64_t row = i; row < std::min(p.m, i + kBlock); row += kBlockRows, ++block) {
          const NextTiles next = requests ? NextTiles(p, i, block, blocks, 0) : NextTiles();
          if (three)
            multiply_block_avx512<tiles_transposed, 3>(p, row, j, next);
          else
            multiply_block_avx512<tiles_transposed, 2>(p, row, j, next);
        }
        j += three ? 3 * kSide : 2 * kSide;
      }
    }
  }
}

/// A range of columns of C, begin ... end - 1.
struct Columns {
  std::int64_t begin, end;
};

/// Requests the memory that the blocks after the present one need, a few cache lines in each step along k. Otherwise
/// AMX, which multiplies a block in less than a microsecond, would wait for the memory of every new block.
class Prefetch {
 public:
  /// Prepares for the block of C at row i and column j, and for the tiles begin ... end - 1 along k. `columns` are the
  /// columns that are computed before the next 32 rows.
  Prefetch(const Product& p, std::int64_t i, std::int64_t j, std::int64_t begin, std::int64_t end, Columns columns)
      : step_(end > begin ? tiles_over(kBlock, end - begin) : 0), row_bytes_(p.row_bytes()) {
    const bool last = j + kBlock >= columns.end;
    const std::int64_t row = last ? i + kBlock : i, column = last ? columns.begin : j + kBlock;
    rows_ = std::clamp<std::int64_t>(p.m - row, 0, kBlock);
    row_ = p.element(row, column);
    two_lines_ = !p.is_rounded() && p.n - column > kSide;
    // The CPU's own prefetcher brings the tiles of the next 32 rows of A in time, unless the present ones serve at most
    // this number of blocks (measured on an Intel Xeon with AMX).
    constexpr std::int64_t kFewBlocks = 8;
    const std::int64_t blocks = tiles_over(columns.end - columns.begin, kBlock);
    if (blocks <= kFewBlocks) next_tiles_ = NextTiles(p, i, (j - columns.begin) / kBlock, blocks, begin);
  }

  /// Requests the lines that belong to one step along k.
  void step() {
    for (std::int64_t row = 0; row < std::min(step_, rows_); ++row, row_ += row_bytes_) {
      _mm_prefetch(row_, _MM_HINT_ET0);
      if (two_lines_) _mm_prefetch(row_ + kLine, _MM_HINT_ET0);
    }
    rows_ -= std::min(step_, rows_);
    next_tiles_.step();
  }

 private:
  std::int64_t step_;       // how many rows of the next block of C one step requests
  std::int64_t row_bytes_;  // the number of bytes from one row of C to the next
  const char* row_;         // the row of the next block that is requested next
  std::int64_t rows_;       // the number of rows that are still to be requested
  bool two_lines_;          // whether a row of the next block takes two lines of the cache
  NextTiles next_tiles_;
};

/// The number of tiles along k that multiply_block_amx() multiplies in one call: so few that the 2 x 16 tiles of A stay
/// in the first-level cache.
constexpr std::int64_t kMostTiles = 16;

/// Multiplies the tiles begin ... end - 1 along k of two tiles of A and two tiles of B with AMX, and adds the products
/// to the block of C at row i and column j, in the tile registers 0 to 3. `columns` are the columns that are computed
/// before the next 32 rows.
void multiply_block_amx(const Product& p, std::int64_t i, std::int64_t j, std::int64_t begin, std::int64_t end,
                        Columns columns) {
  alignas(64) float block[kBlock][kBlock];
  const std::int64_t next = p.depth * kTile;
  const bool plain = p.alpha == 1 && (p.beta == 0 || p.beta == 1);
  float* const c = p.c + i * p.stride + j;
  const bool in_place = plain && !p.is_rounded() && p.m - i >= kBlock && p.n - j >= kBlock;
  // C cannot hold the partial sums of a block that is incomplete or is stored as bfloat16, or with factors other than
  // alpha 1 and beta 0 or 1. The first call for such a block therefore sums over all of k.
  if (!in_place) {
    if (begin > 0) return;
    end = p.depth;
  }
  float* const out = in_place ? c : &block[0][0];
  const std::int64_t stride = in_place ? p.stride : kBlock;
  const auto bytes = static_cast<std::size_t>(stride) * sizeof(float);
  if (in_place && (p.beta == 1 || begin > 0)) {
    _tile_loadd(0, out, bytes);
    _tile_loadd(1, out + kSide, bytes);
    _tile_loadd(2, out + kSide * stride, bytes);
    _tile_loadd(3, out + kSide * stride + kSide, bytes);
  } else {
    _tile_zero(0);
    _tile_zero(1);
    _tile_zero(2);
    _tile_zero(3);
  }
  Prefetch prefetch(p, i, j, begin, end, columns);
  const std::uint32_t *a = p.a_tiles(i) + begin * kTile, *b = p.b_tiles(j) + begin * kTile;
  for (std::int64_t t = begin; t < end; ++t, a += kTile, b += kTile) {
    prefetch.step();
    _tile_loadd(4, a, 64);
    _tile_loadd(6, b, 64);
    _tile_loadd(7, b + next, 64);
    _tile_loadd(5, a + next, 64);
    _tile_dpbf16ps(0, 4, 6);
    _tile_dpbf16ps(1, 4, 7);
    _tile_dpbf16ps(2, 5, 6);
    _tile_dpbf16ps(3, 5, 7);
  }
  _tile_stored(0, out, bytes);
  _tile_stored(1, out + kSide, bytes);
  _tile_stored(2, out + kSide * stride, bytes);
  _tile_stored(3, out + kSide * stride + kSide, bytes);
  if (!in_place || (p.finish && end == p.depth)) p.store_block<2>(i, j, kBlock, out, stride);
}

/// Computes the product with AMX, the CPU's instructions that multiply whole tiles. The blocks of C have the order of
/// multiply_avx512(), but the product goes over k, the dimension of the sums, in ranges of at most kMostTiles tiles.
/// Where k is 0, there is one call for each block, with an empty range.
void multiply_amx(const Product& p) {
  _tile_loadconfig(&kTileShapes);
  const std::int64_t step = std::clamp<std::int64_t>(p.depth, 1, kMostTiles);
  const std::int64_t width = cached_columns(step, kBlock);
  for (std::int64_t first = 0; first < p.n; first += width) {
    const Columns columns{first, std::min(p.n, first + width)};
    for (std::int64_t t = 0; t == 0 || t < p.depth; t += step)
      for (std::int64_t i = 0; i < p.m; i += kBlock)
        for (std::int64_t j = columns.begin; j < columns.end; j += kBlock)
          multiply_block_amx(p, i, j, t, std::min(p.depth, t + step), columns);
  }
  _tile_release();
}

}  // namespace

void convert_to_bfloat16(const float* x, std::int64_t n, Bfloat16* out) {
  std::int64_t i = 0;
  for (; i + 2 * kSide <= n; i += 2 * kSide)
    _mm512_storeu_si512(out + i, rounded(_mm512_loadu_ps(x + i), _mm512_loadu_ps(x + i + kSide)));
  for (; i < n; i += kSide) {
    const __mmask16 mask = first(n - i);
    const __m256bh some = _mm512_cvtneps_pbh(_mm512_maskz_loadu_ps(mask, x + i));
    _mm256_mask_storeu_epi16(out + i, mask, reinterpret_cast<__m256i>(some));
  }
}

void convert_to_bfloat16(const float* x, std::int64_t rows, std::int64_t n, std::int64_t stride, Bfloat16* out,
                         std::int64_t out_stride) {
  for (std::int64_t r = 0; r < rows; ++r) convert_to_bfloat16(x + r * stride, n, out + r * out_stride);
}

}  // namespace heed
#if defined(__clang__)
#pragma clang attribute pop
#else
#pragma GCC pop_options
#endif

namespace heed {

namespace {

/// Rounds B [k, n] to bfloat16 and lays it out in tiles at `memory`.
template <class X>
Bfloat16Tiles right_operand(std::uint32_t* memory, std::int64_t k, std::int64_t n, GemmOperand<X> b) {
  return {make_tiles(Stored<X>{b.data, b.stride, n, k, b.transposed, b.transposed}, memory), k, n};
}

}  // namespace

std::int64_t bfloat16_tile_words(std::int64_t k, std::int64_t n) {
  return words_of_tiles(n, k);
}

Bfloat16Tiles bfloat16_tiles(std::uint32_t* memory, std::int64_t k, std::int64_t n, GemmOperand<float> b) {
  return right_operand(memory, k, n, b);
}

Bfloat16Tiles bfloat16_tiles(Arena& arena, std::int64_t k, std::int64_t n, GemmOperand<float> b) {
  return bfloat16_tiles(arena.tensor<std::uint32_t>({words_of_tiles(n, k)}).data(), k, n, b);
}

Bfloat16Tiles bfloat16_tiles(Arena& arena, std::int64_t k, std::int64_t n, GemmOperand<Bfloat16> b) {
  return right_operand(arena.tensor<std::uint32_t>({words_of_tiles(n, k)}).data(), k, n, b);
}

namespace {

/// Tells whether the products use AMX, which cannot read tiles that are stored transposed.
bool uses_amx() {
  return instruction_set() == InstructionSet::amx;
}

/// Rounds A [m, k] to bfloat16 and lays it out in tiles, in memory of `arena`.
template <class X>
Bfloat16LeftOperand left_operand(Arena& arena, std::int64_t m, std::int64_t k, GemmOperand<X> a) {
  const Stored<X> stored{a.data, a.stride, m, k, !a.transposed, a.transposed && uses_amx()};
  const std::uint32_t* const tiles = make_tiles(stored, arena.tensor<std::uint32_t>({words_of_tiles(m, k)}).data());
  return {tiles, m, k, a.transposed && !uses_amx()};
}

}  // namespace

Bfloat16LeftOperand bfloat16_left_operand(Arena& arena, std::int64_t m, std::int64_t k, GemmOperand<float> a) {
  return left_operand(arena, m, k, a);
}

Bfloat16LeftOperand bfloat16_left_operand(Arena& arena, std::int64_t m, std::int64_t k, GemmOperand<Bfloat16> a) {
  return left_operand(arena, m, k, a);
}

Bfloat16Gradient::Bfloat16Gradient(Arena& arena, std::int64_t rows, std::int64_t columns, const float* dy,
                                   const Bfloat16* kept)
    : rows_(rows),
      columns_(columns),
      dy_(dy),
      kept_(kept),
      tiles_(arena.tensor<std::uint32_t>({words_of_tiles(columns, rows)}).data()) {}

Bfloat16LeftOperand Bfloat16Gradient::add(Arena& arena, std::int64_t begin, std::int64_t end, float* sums) {
  std::uint32_t* const rows = arena.tensor<std::uint32_t>({words_of_tiles(end - begin, columns_)}).data();
  const std::int64_t next_row = tiles_over(columns_, kDepth) * kTile, next_column = tiles_over(rows_, kDepth) * kTile;
  const std::int64_t across = tiles_over(columns_, kDepth), squares = across * tiles_over(end - begin, kDepth);
  const auto row = [&](std::int64_t square) { return begin + square / across * kDepth; };
  const auto column = [&](std::int64_t square) { return square % across * kDepth; };
  const auto kept = [&](std::int64_t at) { return kept_ ? kept_ + at : nullptr; };
  for (std::int64_t square = 0; square < squares; ++square) {
    // The CPU does not foresee reads of short rows. One square takes less time than the memory, two take long enough.
    if (const std::int64_t ahead = square + 2; ahead < squares) {
      const std::int64_t i = row(ahead), j = column(ahead), at = i * columns_ + j;
      const std::int64_t height = std::min(kDepth, end - i), width = std::min(kDepth, columns_ - j);
      prefetch_rows(dy_ + at, height, width, columns_);
      if (kept_) prefetch_rows(kept_ + at, height, width, columns_);
    }
    const std::int64_t i = row(square), j = column(square), at = i * columns_ + j;
    lay_out_square(dy_ + at, kept(at), columns_, end - i, columns_ - j,
                   {rows + (i - begin) / kSide * next_row + j / kDepth * kTile, next_row},
                   {tiles_ + j / kSide * next_column + i / kDepth * kTile, next_column}, uses_amx(),
                   sums ? sums + j : nullptr);
  }
  return {rows, end - begin, columns_};
}

Bfloat16LeftOperand Bfloat16Gradient::transposed() const {
  return {tiles_, columns_, rows_, !uses_amx()};
}

namespace {

/// Computes a product of A, whose tiles may be transposed, with the instructions of the CPU.
void multiply(const Product& product, bool tiles_transposed) {
  if (tiles_transposed)
    multiply_avx512<true>(product);
  else if (uses_amx())
    multiply_amx(product);
  else
    multiply_avx512<false>(product);
}

}  // namespace

void gemm_bfloat16(float alpha, const Bfloat16LeftOperand& a, const Bfloat16Tiles& b, float beta, float* c,
                   std::int64_t c_stride) {
  multiply({a.m, b.n, b.k, tiles_over(b.k, kDepth), a.tiles, b.tiles, alpha, beta, c, c_stride}, a.tiles_transposed);
}

void gemm_bfloat16(const Bfloat16LeftOperand& a, const Bfloat16Tiles& b, const Bfloat16Finish& finish, float* c,
                   std::int64_t c_stride) {
  multiply({a.m, b.n, b.k, tiles_over(b.k, kDepth), a.tiles, b.tiles, 1, 0, c, c_stride, &finish}, a.tiles_transposed);
}

void gemm_bfloat16(Arena& scratch, std::int64_t m, float alpha, GemmOperand<float> a, const Bfloat16Tiles& b,
                   float beta, float* c, std::int64_t c_stride) {
  const ArenaScope scope(scratch);
  gemm_bfloat16(alpha, bfloat16_left_operand(scratch, m, b.k, a), b, beta, c, c_stride);
}

}  // namespace heed
#else
namespace heed {

std::int64_t bfloat16_tile_words(std::int64_t, std::int64_t) {
  return 0;
}

Bfloat16Tiles bfloat16_tiles(std::uint32_t*, std::int64_t, std::int64_t, GemmOperand<float>) {
  throw Error("internal: no bfloat16 products on this CPU");
}

Bfloat16Tiles bfloat16_tiles(Arena&, std::int64_t, std::int64_t, GemmOperand<float>) {
  throw Error("internal: no bfloat16 products on this CPU");
}

Bfloat16Tiles bfloat16_tiles(Arena&, std::int64_t, std::int64_t, GemmOperand<Bfloat16>) {
  throw Error("internal: no bfloat16 products on this CPU");
}

Bfloat16LeftOperand bfloat16_left_operand(Arena&, std::int64_t, std::int64_t, GemmOperand<float>) {
  throw Error("internal: no bfloat16 products on this CPU");
}

Bfloat16LeftOperand bfloat16_left_operand(Arena&, std::int64_t, std::int64_t, GemmOperand<Bfloat16>) {
  throw Error("internal: no bfloat16 products on this CPU");
}

Bfloat16Gradient::Bfloat16Gradient(Arena&, std::int64_t, std::int64_t, const float*, const Bfloat16*) {
  throw Error("internal: no bfloat16 products on this CPU");
}

Bfloat16LeftOperand Bfloat16Gradient::add(Arena&, std::int64_t, std::int64_t, float*) {
  return {};
}

Bfloat16LeftOperand Bfloat16Gradient::transposed() const {
  return {};
}

void convert_to_bfloat16(const float*, std::int64_t, Bfloat16*) {
  throw Error("internal: no bfloat16 products on this CPU");
}

void convert_to_bfloat16(const float*, std::int64_t, std::int64_t, std::int64_t, Bfloat16*, std::int64_t) {
  throw Error("internal: no bfloat16 products on this CPU");
}

void gemm_bfloat16(float, const Bfloat16LeftOperand&, const Bfloat16Tiles&, float, float*, std::int64_t) {
  throw Error("internal: no bfloat16 products on this CPU");
}

void gemm_bfloat16(const Bfloat16LeftOperand&, const Bfloat16Tiles&, const Bfloat16Finish&, float*, std::int64_t) {
  throw Error("internal: no bfloat16 products on this CPU");
}

void gemm_bfloat16(Arena&, std::int64_t, float, GemmOperand<float>, const Bfloat16Tiles&, float, float*, std::int64_t) {
  throw Error("internal: no bfloat16 products on this CPU");
}

}  // namespace heed
#endif
