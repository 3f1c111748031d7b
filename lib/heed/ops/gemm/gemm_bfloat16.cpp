#include "heed/ops/gemm/gemm_bfloat16.h"

#include <algorithm>

#include "heed/base/error.h"
#include "heed/base/instruction_set.h"
#include "heed/base/x86.h"

#if HEED_X86
// Both sides are cut into tiles of 16 x 16 pairs of bfloat16 numbers, a pair being two neighbours along k: of A 16 rows
// with 32 numbers each, of B 16 pairs of rows with 16 columns. That is what AMX multiplies; AVX-512's dot products take
// the same. Tiles are laid along k: [tile of rows (A) or columns (B)][tile of k][1 KB], zeros where the matrix ends.
#if defined(__clang__)
#pragma clang attribute push(__attribute__((target("avx512f,avx512bw,avx512vl,avx512bf16,amx-tile,amx-bf16"))), \
                             apply_to = function)
#else
#pragma GCC push_options
#pragma GCC target("avx512f,avx512bw,avx512vl,avx512bf16,amx-tile,amx-bf16")
#endif

namespace heed {
namespace {

constexpr std::int64_t kSide = 16, kDepth = 32, kTile = kSide * kSide;  // a tile's rows; numbers along k; pairs
constexpr std::int64_t kBlock = 2 * kSide;                              // C is made in blocks of 2 x 2 tiles

std::int64_t tiles_over(std::int64_t size, std::int64_t tile) {
  return (size + tile - 1) / tile;
}

__mmask16 first(std::int64_t count) {
  return static_cast<__mmask16>((std::uint32_t{1} << std::clamp<std::int64_t>(count, 0, kSide)) - 1);
}

__m512i rounded(__m512 low, __m512 high) {
  return reinterpret_cast<__m512i>(_mm512_cvtne2ps_pbh(high, low));
}

/// kDepth numbers of a row, zeros from `count` on.
__m512i load_row(const float* x, std::int64_t count) {
  return rounded(_mm512_maskz_loadu_ps(first(count), x), _mm512_maskz_loadu_ps(first(count - kSide), x + kSide));
}
__m512i load_row(const Bfloat16* x, std::int64_t count) {
  return _mm512_maskz_loadu_epi16(first(count) | static_cast<__mmask32>(first(count - kSide)) << kSide, x);
}

/// kSide numbers of each of two rows, zeros from `count` on; the second row may be absent.
__m512i load_two(const float* x, const float* y, std::int64_t count) {
  const __mmask16 mask = first(count);
  return rounded(_mm512_maskz_loadu_ps(mask, x), y ? _mm512_maskz_loadu_ps(mask, y) : _mm512_setzero_ps());
}
__m512i load_two(const Bfloat16* x, const Bfloat16* y, std::int64_t count) {
  const __mmask16 mask = first(count);
  const __m256i low = _mm256_maskz_loadu_epi16(mask, x);
  const __m256i high = y ? _mm256_maskz_loadu_epi16(mask, y) : _mm256_setzero_si256();
  return _mm512_inserti64x4(_mm512_castsi256_si512(low), high, 1);
}

/// A tile whose rows are rows of x: pairs are neighbours in a row.
template <class X>
void tile_of_rows(const X* x, std::int64_t stride, std::int64_t rows, std::int64_t columns, __m512i tile[kSide]) {
  for (std::int64_t r = 0; r < kSide; ++r)
    tile[r] = r < rows ? load_row(x + r * stride, columns) : _mm512_setzero_si512();
}

/// A tile whose rows are pairs of rows of x: pairs stand one above the other.
template <class X>
void tile_of_row_pairs(const X* x, std::int64_t stride, std::int64_t rows, std::int64_t columns, __m512i tile[kSide]) {
  const __m512i interleave = _mm512_set_epi16(31, 15, 30, 14, 29, 13, 28, 12, 27, 11, 26, 10, 25, 9, 24, 8, 23, 7, 22,
                                              6, 21, 5, 20, 4, 19, 3, 18, 2, 17, 1, 16, 0);
  for (std::int64_t p = 0; p < kSide; ++p) {
    tile[p] = _mm512_setzero_si512();
    if (2 * p >= rows) continue;
    const X* const row = x + 2 * p * stride;
    tile[p] = _mm512_permutexvar_epi16(interleave, load_two(row, 2 * p + 1 < rows ? row + stride : nullptr, columns));
  }
}

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

/// Words of all tiles of one side: `size` rows of A or columns of B, an even number of tiles of them.
std::int64_t words_of_tiles(std::int64_t size, std::int64_t k) {
  return tiles_over(size, kBlock) * 2 * tiles_over(k, kDepth) * kTile;
}

/// Writes all tiles of one side and returns where. `along_rows`: k runs along the stored rows.
template <class X>
const std::uint32_t* make_tiles(std::uint32_t* const tiles, const X* x, std::int64_t stride, std::int64_t size,
                                std::int64_t k, bool along_rows, bool right) {
  const std::int64_t across = tiles_over(size, kBlock) * 2, depth = tiles_over(k, kDepth);
  const auto make = [&](std::int64_t i, std::int64_t j) {
    __m512i tile[kSide];
    if (along_rows)
      tile_of_rows(x + i * kSide * stride + j * kDepth, stride, size - i * kSide, k - j * kDepth, tile);
    else
      tile_of_row_pairs(x + j * kDepth * stride + i * kSide, stride, k - j * kDepth, size - i * kSide, tile);
    if (along_rows == right) transpose(tile);
    std::uint32_t* const out = tiles + (i * depth + j) * kTile;
    for (std::int64_t r = 0; r < kSide; ++r) _mm512_store_si512(out + r * kSide, tile[r]);
  };
  // Along the stored rows, whose memory the processor fetches ahead.
  if (along_rows)
    for (std::int64_t i = 0; i < across; ++i)
      for (std::int64_t j = 0; j < depth; ++j) make(i, j);
  else
    for (std::int64_t j = 0; j < depth; ++j)
      for (std::int64_t i = 0; i < across; ++i) make(i, j);
  return tiles;
}

/// c [rows, columns] = alpha block + beta c.
void store_block(const float (&block)[kBlock][kBlock], std::int64_t rows, std::int64_t columns, float alpha, float beta,
                 float* c, std::int64_t stride) {
  const __m512 a = _mm512_set1_ps(alpha), b = _mm512_set1_ps(beta);
  for (std::int64_t r = 0; r < std::min(rows, kBlock); ++r)
    for (std::int64_t j = 0; j < std::min(columns, kBlock); j += kSide) {
      const __mmask16 mask = first(columns - j);
      float* const out = c + r * stride + j;
      __m512 sum = _mm512_mul_ps(a, _mm512_load_ps(&block[r][j]));
      if (beta != 0) sum = _mm512_fmadd_ps(b, _mm512_maskz_loadu_ps(mask, out), sum);
      _mm512_mask_storeu_ps(out, mask, sum);
    }
}

struct Product {
  std::int64_t m, n, depth;  ///< depth: tiles along k
  const std::uint32_t *a, *b;
  float alpha, beta;
  float* c;
  std::int64_t stride;

  const std::uint32_t* a_tiles(std::int64_t row) const { return a + row / kSide * depth * kTile; }
  const std::uint32_t* b_tiles(std::int64_t column) const { return b + column / kSide * depth * kTile; }

  /// Calls body(row, column, begin, end) for every block of C and the tiles from `begin` to before `end` along k, of
  /// which there are `most` at a time (once with none where k is 0); in an order in which A's tiles come from the
  /// first-level cache, B's from the second, and C's rows are written from left to right: rows a multiple of 4 kB apart
  /// hinder each other otherwise.
  template <class Body>
  void for_each_block(std::int64_t most, Body body) const {
    constexpr std::int64_t kCachedPairs = std::int64_t{512} << 10 >> 2;
    const std::int64_t step = std::max<std::int64_t>(1, std::min(most, depth));
    const std::int64_t columns = std::max<std::int64_t>(1, kCachedPairs / (2 * step * kTile)) * kBlock;
    for (std::int64_t first = 0; first < n; first += columns)
      for (std::int64_t t = 0; t == 0 || t < depth; t += step)
        for (std::int64_t i = 0; i < m; i += kBlock)
          for (std::int64_t j = first; j < std::min(n, first + columns); j += kBlock)
            body(i, j, t, std::min(depth, t + step));
  }
};

/// Eight rows of A's tile with two tiles of B.
void multiply_avx512(const Product& p) {
  constexpr int kRows = 8;
  alignas(64) float block[kBlock][kBlock];
  const std::int64_t next = p.depth * kTile;  // from a tile to the one beside it
  p.for_each_block(p.depth, [&](std::int64_t i, std::int64_t j, std::int64_t, std::int64_t) {
    for (std::int64_t r = 0; r < std::min(p.m - i, kBlock); r += kRows) {
      const std::uint32_t* a = p.a_tiles(i) + r / kSide * next + r % kSide * kSide;
      const std::uint32_t* b = p.b_tiles(j);
      __m512 sums[kRows][2];
      for (auto& sum : sums) sum[0] = sum[1] = _mm512_setzero_ps();
      for (std::int64_t t = 0; t < p.depth; ++t, a += kTile, b += kTile)
        for (std::int64_t k = 0; k < kSide; ++k) {
          const auto b0 = reinterpret_cast<__m512bh>(_mm512_load_si512(b + k * kSide));
          const auto b1 = reinterpret_cast<__m512bh>(_mm512_load_si512(b + next + k * kSide));
          for (int row = 0; row < kRows; ++row) {
            const auto pair = reinterpret_cast<__m512bh>(_mm512_set1_epi32(static_cast<int>(a[row * kSide + k])));
            sums[row][0] = _mm512_dpbf16_ps(sums[row][0], pair, b0);
            sums[row][1] = _mm512_dpbf16_ps(sums[row][1], pair, b1);
          }
        }
      for (int row = 0; row < kRows; ++row) {
        _mm512_store_ps(&block[r + row][0], sums[row][0]);
        _mm512_store_ps(&block[r + row][kSide], sums[row][1]);
      }
    }
    store_block(block, p.m - i, p.n - j, p.alpha, p.beta, p.c + i * p.stride + j, p.stride);
  });
}

/// The shapes of AMX's eight tile registers (Intel 64 manual, palette 1): 16 rows of 64 bytes each. A constant, because
/// the intrinsic tells the compiler of its first bytes only.
struct alignas(64) TileShapes {
  std::uint8_t palette = 1, start_row = 0, reserved[14] = {};
  std::uint16_t bytes_per_row[16] = {64, 64, 64, 64, 64, 64, 64, 64};
  std::uint8_t rows[16] = {16, 16, 16, 16, 16, 16, 16, 16};
};
constexpr TileShapes kTileShapes;

void multiply_amx(const Product& p) {
  _tile_loadconfig(&kTileShapes);
  alignas(64) float block[kBlock][kBlock];
  const std::int64_t next = p.depth * kTile;
  const bool plain = p.alpha == 1 && (p.beta == 0 || p.beta == 1);
  constexpr std::int64_t kMostTiles = 16;  // two rows of them fit the first-level cache
  p.for_each_block(kMostTiles, [&](std::int64_t i, std::int64_t j, std::int64_t begin, std::int64_t end) {
    float* const c = p.c + i * p.stride + j;
    const bool in_place = plain && p.m - i >= kBlock && p.n - j >= kBlock;
    if (!in_place) {  // all at once, since C holds no sums on the way
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
    const std::uint32_t *a = p.a_tiles(i) + begin * kTile, *b = p.b_tiles(j) + begin * kTile;
    for (std::int64_t t = begin; t < end; ++t, a += kTile, b += kTile) {
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
    if (!in_place) store_block(block, p.m - i, p.n - j, p.alpha, p.beta, c, p.stride);
  });
  _tile_release();
}

}  // namespace

void convert_to_bfloat16(const float* x, std::int64_t n, Bfloat16* out) {
  for (std::int64_t i = 0; i < n; i += kSide) {
    const __mmask16 mask = first(n - i);
    const __m256bh some = _mm512_cvtneps_pbh(_mm512_maskz_loadu_ps(mask, x + i));
    _mm256_mask_storeu_epi16(out + i, mask, reinterpret_cast<__m256i>(some));
  }
}

}  // namespace heed
#if defined(__clang__)
#pragma clang attribute pop
#else
#pragma GCC pop_options
#endif

namespace heed {

std::int64_t bfloat16_tile_words(std::int64_t k, std::int64_t n) {
  return words_of_tiles(n, k);
}

Bfloat16Tiles bfloat16_tiles(std::uint32_t* memory, std::int64_t k, std::int64_t n, GemmOperand<float> b) {
  return {make_tiles(memory, b.data, b.stride, n, k, b.transposed, true), k, n};
}

Bfloat16Tiles bfloat16_tiles(Arena& arena, std::int64_t k, std::int64_t n, GemmOperand<float> b) {
  return bfloat16_tiles(arena.tensor<std::uint32_t>({words_of_tiles(n, k)}).data(), k, n, b);
}

Bfloat16Tiles bfloat16_tiles(Arena& arena, std::int64_t k, std::int64_t n, GemmOperand<Bfloat16> b) {
  auto* const memory = arena.tensor<std::uint32_t>({words_of_tiles(n, k)}).data();
  return {make_tiles(memory, b.data, b.stride, n, k, b.transposed, true), k, n};
}

Bfloat16LeftOperand bfloat16_left_operand(Arena& arena, std::int64_t m, std::int64_t k, GemmOperand<float> a) {
  auto* const memory = arena.tensor<std::uint32_t>({words_of_tiles(m, k)}).data();
  return {make_tiles(memory, a.data, a.stride, m, k, !a.transposed, false), m, k};
}

Bfloat16LeftOperand bfloat16_left_operand(Arena& arena, std::int64_t m, std::int64_t k, GemmOperand<Bfloat16> a) {
  auto* const memory = arena.tensor<std::uint32_t>({words_of_tiles(m, k)}).data();
  return {make_tiles(memory, a.data, a.stride, m, k, !a.transposed, false), m, k};
}

void gemm_bfloat16(float alpha, const Bfloat16LeftOperand& a, const Bfloat16Tiles& b, float beta, float* c,
                   std::int64_t c_stride) {
  const Product product{a.m, b.n, tiles_over(b.k, kDepth), a.tiles, b.tiles, alpha, beta, c, c_stride};
  instruction_set() == InstructionSet::amx ? multiply_amx(product) : multiply_avx512(product);
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

void convert_to_bfloat16(const float*, std::int64_t, Bfloat16*) {
  throw Error("internal: no bfloat16 products on this CPU");
}

void gemm_bfloat16(float, const Bfloat16LeftOperand&, const Bfloat16Tiles&, float, float*, std::int64_t) {
  throw Error("internal: no bfloat16 products on this CPU");
}

void gemm_bfloat16(Arena&, std::int64_t, float, GemmOperand<float>, const Bfloat16Tiles&, float, float*, std::int64_t) {
  throw Error("internal: no bfloat16 products on this CPU");
}

}  // namespace heed
#endif
