// How Y = X W^T is computed from 8-bit integers (gemm_int8.h explains the scales).
//
// The CPU's dot products (VNNI) take four unsigned bytes of X and four signed bytes of W, neighbours along k (the
// dimension over which the product sums), and add their four products to a 32-bit sum. One instruction does that for 16
// columns of Y, that is, for 16 rows of W. The bytes of W are therefore packed into panels of 16 rows: a panel holds
// the first four numbers of row 0, the first four of row 1, ... of row 15, then the next four numbers of each row, and
// so on: [panel][k / 4][16 rows][4 neighbours]. A step of four along k fills 64 bytes, one vector; 16 such vectors in a
// row are a tile of AMX.
//
// An example with panels of 2 rows and steps of 2 along k:
//
//   W = 1 2 3 4     panel = 1 2  5 6     (the first two numbers of each row)
//       5 6 7 8             3 4  7 8     (the next two numbers of each row)
//
// X must be unsigned, so 128 is added to each of its integers: x = (1, 0, -1, 0) is stored as (129, 128, 127, 128).
// The sum with row 0 of W is then 129 * 1 + 128 * 2 + 127 * 3 + 128 * 4 = 1278. That is too much by 128 times the sum
// of row 0, 128 * (1 + 2 + 3 + 4) = 1280, which is subtracted at the end: 1278 - 1280 = -2 = 1 * 1 - 1 * 3. The sums of
// W's rows are computed once, when W is packed. Zeros fill W up to a multiple of 32 rows and of 64 numbers along k.
//
// CPUs without VNNI multiply in three instructions. The first one (vpmaddubsw) multiplies unsigned bytes by signed
// bytes, and adds the products of two neighbours to a sum of 16 bits. The second one adds two such sums to a sum of 32
// bits, and the third one adds this sum to the sum so far. A sum of 16 bits holds at most 32,767, and 127 * 255 + 127 *
// 255 is more. On these CPUs, 128 is added to W, not to X, so that the numbers of X alone decide whether the sums fit.
// They fit for two neighbours a and b of X that have different signs or a sum from -128 to 128, since 128 * 255 =
// 32,640. Nearly all neighbours are like that, because only the largest number of a row becomes 127. All others are
// split: (100, 90) = (38, 90) + (62, 0). Their second part, the rest, is multiplied separately, and only at those steps
// along k where a rest is not 0 (Int8Rest). If all neighbours had rests, the product would take twice the time.
#include "heed/ops/gemm/gemm_int8.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <string>
#include <vector>

#include "heed/base/error.h"
#include "heed/base/instruction_set.h"
#include "heed/base/x86.h"
#include "heed/ops/gemm/tile_shapes.h"
#include "heed/tensor/tensor.h"

namespace heed {
namespace {

// W is read in panels of kPanel rows, which give kPanel columns of Y. One step of a dot product takes kStep numbers
// along k, the dimension of the sums; one tile of AMX spans kTileDepth numbers along k.
constexpr std::int64_t kPanel = 16, kStep = 4, kTileDepth = 64;
// The numbers of columns and rows of a block of Y, the part of Y that is computed at a time.
constexpr std::int64_t kColumns = kInt8Columns, kRows = 32;
static_assert(kColumns == 2 * kPanel);
/// Products with at most this many rows of X use AVX-512's dot products in place of AMX: AMX's tiles would be mostly
/// empty, and the dot products are as fast without the preparation that tiles need.
constexpr std::int64_t kFewRows = 4;
// One operand, X or W, is stored in unsigned bytes: the byte q + kZero stands for the integer q.
constexpr int kZero = 128;

/// Returns the factor 127 / `most` with which a row whose largest absolute value is `most` becomes integers. Returns 0
/// where the factor would be infinite: all integers of such a row are 0.
float inverse_of(float most) {
  return most > 127.0F / std::numeric_limits<float>::max() ? 127.0F / most : 0;
}

/// Rounds `size` up to a multiple of `multiple`.
std::int64_t padded(std::int64_t size, std::int64_t multiple) {
  return (size + multiple - 1) / multiple * multiple;
}

/// Pointers to the three parts of a weight W [n, k] that was converted to 8-bit integers. The parts follow each other
/// in memory.
template <class Byte, class Float, class Int>
struct WeightParts {
  Float* scales;  ///< [n]: the scale of each row of W
  Int* sums;      ///< [n]: the sum of the integers in each row of W where 128 is added to X, otherwise 0
  Byte* panels;   ///< [n / 16][k / 4][16][4]: the integers of W, 16 rows in a panel
};

/// Returns pointers to the scales, the sums and the panels of a weight with n rows, converted to 8-bit integers, whose
/// bytes begin at `data`.
auto parts_of(std::byte* data, std::int64_t n) {
  const auto columns = static_cast<std::size_t>(padded(n, kColumns));
  return WeightParts<std::int8_t, float, std::int32_t>{reinterpret_cast<float*>(data),
                                                       reinterpret_cast<std::int32_t*>(data + 4 * columns),
                                                       reinterpret_cast<std::int8_t*>(data + 8 * columns)};
}
auto parts_of(const std::byte* data, std::int64_t n) {
  const auto columns = static_cast<std::size_t>(padded(n, kColumns));
  return WeightParts<const std::int8_t, const float, const std::int32_t>{
      reinterpret_cast<const float*>(data), reinterpret_cast<const std::int32_t*>(data + 4 * columns),
      reinterpret_cast<const std::int8_t*>(data + 8 * columns)};
}

/// The sums of one block of Y = X W^T: element [r][j] is the dot product, in integers, of row r of X and row j of W,
/// both counted from the block's first row and column.
using Block = std::int32_t[kRows][kColumns];

/// The largest number of products that one 32-bit sum may add up: 65,536 products of at most 255 x 127 stay below 2^31.
constexpr std::int64_t kMostPart = 65'536;
static_assert(kMostPart % kTileDepth == 0 && kMostPart * 255 * 127 <= std::numeric_limits<std::int32_t>::max());

/// The type of the functions that compute a block of sums (see Block). `x` is the block's rows of X as bytes
/// [rows][depth], and `panels` are the two panels of W for the block's columns. A function multiplies the first `part`
/// numbers of each row. `depth` and `part` are multiples of kTileDepth, `part` is at most kMostPart, and `rows` is at
/// most kRows. The memory of X holds a multiple of 16 rows, all of which AMX may read.
using Multiply = void (*)(const std::uint8_t* x, std::int64_t rows, std::int64_t depth, std::int64_t part,
                          const std::int8_t* panels, Block& block);

// Vectors of 128 bits, a language extension of the compiler that works on every CPU. On x86-64 the functions below call
// SSE2's instructions by name, because gcc 12 translates the extension into many more.
using Words [[gnu::vector_size(16)]] = std::int16_t;
using Sums [[gnu::vector_size(16)]] = std::int32_t;

/// Returns the eight signed bytes at `from`, widened to 16 bits.
Words widened(const std::int8_t* from) {
#if HEED_X86
  const __m128i bytes = _mm_loadl_epi64(reinterpret_cast<const __m128i*>(from));
  return reinterpret_cast<Words>(_mm_srai_epi16(_mm_unpacklo_epi8(bytes, bytes), 8));
#else
  using Bytes [[gnu::vector_size(8)]] = std::int8_t;
  Bytes bytes;
  std::memcpy(&bytes, from, sizeof bytes);
  return __builtin_convertvector(bytes, Words);
#endif
}

#if HEED_X86
/// Loads the four bytes at `from` into one number.
inline std::int32_t load_four(const std::uint8_t* from) {
  std::int32_t four;
  std::memcpy(&four, from, sizeof four);
  return four;
}
#endif

/// Returns the four unsigned bytes at `from` twice, widened to 16 bits.
Words widened_twice(const std::uint8_t* from) {
#if HEED_X86
  return reinterpret_cast<Words>(_mm_unpacklo_epi8(_mm_set1_epi32(load_four(from)), _mm_setzero_si128()));
#else
  return Words{from[0], from[1], from[2], from[3], from[0], from[1], from[2], from[3]};
#endif
}

/// Returns sums[i] + a[2i] * b[2i] + a[2i + 1] * b[2i + 1] for i = 0 ... 3.
Sums add_products(Sums sums, Words a, Words b) {
#if HEED_X86
  return sums + reinterpret_cast<Sums>(_mm_madd_epi16(reinterpret_cast<__m128i>(a), reinterpret_cast<__m128i>(b)));
#else
  using Products [[gnu::vector_size(32)]] = std::int32_t;
  const Products all = __builtin_convertvector(a, Products) * __builtin_convertvector(b, Products);
  return sums + __builtin_shufflevector(all, all, 0, 2, 4, 6) + __builtin_shufflevector(all, all, 1, 3, 5, 7);
#endif
}

/// Computes a block of sums (see Block) with vectors of 128 bits, which every CPU has: two rows of X at a time with
/// eight rows of W. The bytes are widened to 16 bits, so that no product or sum is too large.
void multiply_portable(const std::uint8_t* x, std::int64_t rows, std::int64_t depth, std::int64_t part,
                       const std::int8_t* panels, Block& block) {
  constexpr int kRowsAtOnce = 2, kColumnsAtOnce = 8, kVectors = 4;  // each vector holds two rows of W
  for (std::int64_t j = 0; j < kColumns; j += kColumnsAtOnce) {
    const std::int8_t* const panel = panels + j / kPanel * kPanel * depth + j % kPanel * kStep;
    for (std::int64_t r = 0; r < rows; r += kRowsAtOnce) {
      const std::uint8_t* const row[kRowsAtOnce] = {x + r * depth, x + std::min(r + 1, rows - 1) * depth};
      Sums sums[kRowsAtOnce][kVectors] = {};
      for (std::int64_t k = 0; k < part; k += kStep) {
        Words w[kVectors];
        for (int v = 0; v < kVectors; ++v) w[v] = widened(panel + k * kPanel + v * 8);
        for (int i = 0; i < kRowsAtOnce; ++i) {
          const Words four = widened_twice(row[i] + k);
          for (int v = 0; v < kVectors; ++v) sums[i][v] = add_products(sums[i][v], four, w[v]);
        }
      }
      for (std::int64_t i = 0; i < std::min<std::int64_t>(kRowsAtOnce, rows - r); ++i)
        for (int v = 0; v < kVectors; ++v) {
          const Sums halves = sums[i][v];  // the sums of two columns, each in two halves
          block[r + i][j + 2 * v] = halves[0] + halves[1];
          block[r + i][j + 2 * v + 1] = halves[2] + halves[3];
        }
    }
  }
}

/// Converts a row of k numbers to `depth` bytes 128 + q, where q = x / scale, rounded to the nearest (ties to even);
/// q is 0 from element k on. Returns the scale max |x| / 127, or NaN where a number is not finite.
float quantize_row_portable(const float* x, std::int64_t k, std::int64_t depth, std::uint8_t* out) {
  float most = 0, zero = 0;
  for (std::int64_t i = 0; i < k; ++i) most = std::max(most, std::abs(x[i])), zero += x[i] * 0;
  const float inverse = inverse_of(most);
  for (std::int64_t i = 0; i < k; ++i) out[i] = static_cast<std::uint8_t>(kZero + std::lrintf(x[i] * inverse));
  std::fill(out + k, out + depth, static_cast<std::uint8_t>(kZero));
  // `zero` is the sum of all x * 0: 0 where all numbers are finite, otherwise NaN.
  return most / 127.0F + zero;
}

/// The operands, other than the sums, of the last step, which turns a block of integer sums into a block of Y: y = (sum
/// - 128 * weight_sum) * row_scale * weight_scale + bias.
struct Finish {
  /// [kColumns]: WeightParts::sums of the block's columns.
  const std::int32_t* weight_sums;
  /// `weight_scales` [kColumns] holds the scale of the row of W for each column of the block; `row_scales` [rows] holds
  /// the scale of each row of X.
  const float *weight_scales, *row_scales;
  const float* bias;           ///< [columns]: the bias of each column, or null
  std::int64_t rows, columns;  ///< the size of the block of Y
  float* y;                    ///< the first element of the block of Y
  std::int64_t stride;         ///< the number of elements from one row of Y to the next
};

/// Computes a block of Y from a block of integer sums (see Finish for the formula), in plain C++.
void finish_portable(const Block& block, const Finish& f) {
  for (std::int64_t r = 0; r < f.rows; ++r)
    for (std::int64_t j = 0; j < f.columns; ++j)
      f.y[r * f.stride + j] = std::fma(static_cast<float>(block[r][j] - kZero * f.weight_sums[j]),
                                       f.row_scales[r] * f.weight_scales[j], f.bias ? f.bias[j] : 0);
}

#if HEED_X86
// Each of these macros is an attribute that compiles a function for one instruction set, whatever the compiler's
// options.
#define HEED_AVX2 __attribute__((target("avx2,fma")))
#define HEED_AVX512 __attribute__((target("avx512f,avx512bw,avx512vl")))
#define HEED_AMX __attribute__((target("avx512f,avx512bw,avx512vl,amx-tile,amx-int8")))

HEED_AVX2 float quantize_row_avx2(const float* x, std::int64_t k, std::int64_t depth, std::uint8_t* out) {
  const __m256 sign = _mm256_set1_ps(-0.0F);
  __m256 largest = _mm256_setzero_ps(), zeros = _mm256_setzero_ps();
  std::int64_t i = 0;
  for (; i + 8 <= k; i += 8) {
    const __m256 value = _mm256_loadu_ps(x + i);
    largest = _mm256_max_ps(largest, _mm256_andnot_ps(sign, value));
    zeros = _mm256_fmadd_ps(value, _mm256_setzero_ps(), zeros);
  }
  float lanes[8], zero_lanes[8], most = 0, zero = 0;
  _mm256_storeu_ps(lanes, largest);
  _mm256_storeu_ps(zero_lanes, zeros);
  for (const float lane : lanes) most = std::max(most, lane);
  for (const float lane : zero_lanes) zero += lane;
  for (; i < k; ++i) most = std::max(most, std::abs(x[i])), zero += x[i] * 0;
  const float inverse = inverse_of(most);
  const __m256 factor = _mm256_set1_ps(inverse);
  for (i = 0; i + 8 <= k; i += 8) {
    const __m256i q =
        _mm256_add_epi32(_mm256_cvtps_epi32(_mm256_mul_ps(_mm256_loadu_ps(x + i), factor)), _mm256_set1_epi32(kZero));
    const __m128i words = _mm_packus_epi32(_mm256_castsi256_si128(q), _mm256_extracti128_si256(q, 1));
    _mm_storel_epi64(reinterpret_cast<__m128i*>(out + i), _mm_packus_epi16(words, words));
  }
  for (; i < k; ++i) out[i] = static_cast<std::uint8_t>(kZero + _mm_cvtss_si32(_mm_set_ss(x[i] * inverse)));
  std::fill(out + k, out + depth, static_cast<std::uint8_t>(kZero));
  return most / 127.0F + zero;
}

HEED_AVX2 void finish_avx2(const Block& block, const Finish& f) {
  alignas(32) float start[kColumns] = {}, buffer[kColumns];
  if (f.bias) std::copy_n(f.bias, f.columns, start);
  const bool whole = f.columns == kColumns;
  for (std::int64_t r = 0; r < f.rows; ++r) {
    float* const out = whole ? f.y + r * f.stride : buffer;
    const __m256 factor = _mm256_set1_ps(f.row_scales[r]);
    for (std::int64_t j = 0; j < kColumns; j += 8) {
      const __m256i taken =
          _mm256_slli_epi32(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(f.weight_sums + j)), 7);
      const __m256i sum = _mm256_sub_epi32(_mm256_load_si256(reinterpret_cast<const __m256i*>(&block[r][j])), taken);
      const __m256 scaled = _mm256_mul_ps(factor, _mm256_loadu_ps(f.weight_scales + j));
      _mm256_storeu_ps(out + j, _mm256_fmadd_ps(_mm256_cvtepi32_ps(sum), scaled, _mm256_load_ps(start + j)));
    }
    if (!whole) std::copy_n(buffer, f.columns, f.y + r * f.stride);
  }
}

/// Splits a row of X of `depth` bytes 128 + q, in place, into signed bytes that the products of neighbours can take,
/// and the rests (see the top of this file). Writes at most depth / 4 rests to `steps`.
HEED_AVX2 Int8Rest split_row(std::uint8_t* row, std::int64_t depth, Int8RestStep* steps) {
  const __m256i ones = _mm256_set1_epi16(1), ones_bytes = _mm256_set1_epi8(1);
  const __m256i flip = _mm256_set1_epi8(static_cast<char>(kZero)), low_bytes = _mm256_set1_epi16(0xFF);
  const __m256i most = _mm256_set1_epi16(128), least = _mm256_set1_epi16(-128);
  __m256i sums = _mm256_setzero_si256();
  Int8RestStep* end = steps;
  for (std::int64_t k = 0; k < depth; k += 32) {
    auto* const bytes = reinterpret_cast<__m256i*>(row + k);
    const __m256i q = _mm256_xor_si256(_mm256_loadu_si256(bytes), flip);
    const __m256i pairs = _mm256_maddubs_epi16(ones_bytes, q);
    sums = _mm256_add_epi32(sums, _mm256_madd_epi16(pairs, ones));
    // The part of a pair's sum outside of -128 ... 128 is subtracted from the first number of the pair, whose sign does
    // not change.
    const __m256i beyond = _mm256_sub_epi16(pairs, _mm256_min_epi16(_mm256_max_epi16(pairs, least), most));
    const __m256i rests = _mm256_and_si256(beyond, low_bytes);
    _mm256_storeu_si256(bytes, _mm256_sub_epi8(q, rests));
    const __m256i none = _mm256_cmpeq_epi32(rests, _mm256_setzero_si256());
    unsigned some = 0xFFu & ~static_cast<unsigned>(_mm256_movemask_ps(_mm256_castsi256_ps(none)));
    alignas(32) std::int32_t fours[8];
    if (some != 0) _mm256_store_si256(reinterpret_cast<__m256i*>(fours), rests);
    for (; some != 0; some &= some - 1) {
      const int step = __builtin_ctz(some);
      *end++ = {static_cast<std::int32_t>(k + step * kStep), fours[step]};
    }
  }
  std::int32_t lanes[8], sum = 0;
  _mm256_storeu_si256(reinterpret_cast<__m256i*>(lanes), sums);
  for (const std::int32_t lane : lanes) sum += lane;
  return {steps, end - steps, -kZero * sum};
}

/// Computes dot products without VNNI, in three instructions: add() adds to each sum the dot product of four signed
/// bytes of X and the four unsigned bytes of W for that sum.
struct DotInThree {
  HEED_AVX2 static void add(__m256i& sums, __m256i x, __m256i w) {
    sums = _mm256_add_epi32(sums, _mm256_madd_epi16(_mm256_maddubs_epi16(w, x), _mm256_set1_epi16(1)));
  }
  HEED_AVX512 static void add(__m512i& sums, __m512i x, __m512i w) {
    sums = _mm512_add_epi32(sums, _mm512_madd_epi16(_mm512_maddubs_epi16(w, x), _mm512_set1_epi16(1)));
  }
};

/// Computes dot products with VNNI: add() adds to each sum the dot product of four unsigned bytes of X and the four
/// signed bytes of W for that sum. (The instruction is written out because gcc 12 copies the sums to other registers
/// and back around the intrinsic function, which takes a third of the speed.)
struct DotVnni {
  HEED_AVX2 static void add(__m256i& sums, __m256i x, __m256i w) {
    asm("%{vex%} vpdpbusd %2, %1, %0" : "+x"(sums) : "x"(x), "x"(w));
  }
  HEED_AVX512 static void add(__m512i& sums, __m512i x, __m512i w) {
    asm("vpdpbusd %2, %1, %0" : "+v"(sums) : "v"(x), "v"(w));
  }
};

// The compiler keeps the sums below in registers only where it unrolls the loops over them.
#define HEED_UNROLL _Pragma("GCC unroll 8")

/// Computes R rows of a block of sums (see Block) with vectors of 256 bits.
template <class Dot, int R>
HEED_AVX2 void multiply_rows_256(const std::uint8_t* x, std::int64_t depth, std::int64_t part,
                                 const std::int8_t* panels, std::int32_t (*block)[kColumns]) {
  const std::int8_t* const right = panels + kPanel * depth;
  __m256i sums[R][4];
  HEED_UNROLL
  for (int r = 0; r < R; ++r) sums[r][0] = sums[r][1] = sums[r][2] = sums[r][3] = _mm256_setzero_si256();
  for (std::int64_t k = 0; k < part; k += kStep) {
    __m256i four_of_x[R];
    HEED_UNROLL
    for (int r = 0; r < R; ++r) four_of_x[r] = _mm256_set1_epi32(load_four(x + r * depth + k));
    HEED_UNROLL
    for (int j = 0; j < 4; ++j) {
      const std::int8_t* const from = (j < 2 ? panels : right) + k * kPanel + j % 2 * 32;
      const __m256i w = _mm256_load_si256(reinterpret_cast<const __m256i*>(from));
      HEED_UNROLL
      for (int r = 0; r < R; ++r) Dot::add(sums[r][j], four_of_x[r], w);
    }
  }
  HEED_UNROLL
  for (int r = 0; r < R; ++r) {
    HEED_UNROLL
    for (int j = 0; j < 4; ++j) _mm256_store_si256(reinterpret_cast<__m256i*>(&block[r][8 * j]), sums[r][j]);
  }
}

/// Computes a block of sums (see Block) with vectors of 256 bits, R rows at a time.
template <class Dot, int R>
HEED_AVX2 void multiply_256(const std::uint8_t* x, std::int64_t rows, std::int64_t depth, std::int64_t part,
                            const std::int8_t* panels, Block& block) {
  std::int64_t r = 0;
  for (; r + R <= rows; r += R) multiply_rows_256<Dot, R>(x + r * depth, depth, part, panels, block + r);
  for (; r < rows; ++r) multiply_rows_256<Dot, 1>(x + r * depth, depth, part, panels, block + r);
}

HEED_AVX2 void add_rest_avx2(const Int8Rest& rest, std::int64_t depth, const std::int8_t* panels,
                             std::int32_t* row_of_block) {
  const std::int8_t* const right = panels + kPanel * depth;
  auto* const out = reinterpret_cast<__m256i*>(row_of_block);
  __m256i sums[4];
  HEED_UNROLL
  for (int j = 0; j < 4; ++j) sums[j] = _mm256_add_epi32(_mm256_load_si256(out + j), _mm256_set1_epi32(rest.start));
  for (const Int8RestStep* step = rest.steps; step != rest.steps + rest.count; ++step) {
    const __m256i four_of_x = _mm256_set1_epi32(step->four);
    HEED_UNROLL
    for (int j = 0; j < 4; ++j) {
      const std::int8_t* const from = (j < 2 ? panels : right) + step->k * kPanel + j % 2 * 32;
      DotInThree::add(sums[j], four_of_x, _mm256_load_si256(reinterpret_cast<const __m256i*>(from)));
    }
  }
  HEED_UNROLL
  for (int j = 0; j < 4; ++j) _mm256_store_si256(out + j, sums[j]);
}

HEED_AVX512 float quantize_row_avx512(const float* x, std::int64_t k, std::int64_t depth, std::uint8_t* out) {
  __m512 largest = _mm512_setzero_ps(), zeros = _mm512_setzero_ps();
  for (std::int64_t i = 0; i < k; i += 16) {
    const auto mask = static_cast<__mmask16>(k - i >= 16 ? 0xFFFF : (1 << (k - i)) - 1);
    const __m512 value = _mm512_maskz_loadu_ps(mask, x + i);
    largest = _mm512_max_ps(largest, _mm512_abs_ps(value));
    zeros = _mm512_fmadd_ps(value, _mm512_setzero_ps(), zeros);
  }
  const float most = _mm512_reduce_max_ps(largest);
  const __m512 factor = _mm512_set1_ps(inverse_of(most));
  for (std::int64_t i = 0; i < depth; i += 16) {
    const auto mask = static_cast<__mmask16>(k - i >= 16 ? 0xFFFF : k > i ? (1 << (k - i)) - 1 : 0);
    const __m512i q = _mm512_cvtps_epi32(_mm512_mul_ps(_mm512_maskz_loadu_ps(mask, x + i), factor));
    _mm_storeu_si128(reinterpret_cast<__m128i*>(out + i),
                     _mm512_cvtepi32_epi8(_mm512_add_epi32(q, _mm512_set1_epi32(kZero))));
  }
  return most / 127.0F + _mm512_reduce_add_ps(zeros);
}

HEED_AVX512 void finish_avx512(const Block& block, const Finish& f) {
  for (std::int64_t j = 0; j < f.columns; j += 16) {
    const auto mask = static_cast<__mmask16>(f.columns - j >= 16 ? 0xFFFF : (1 << (f.columns - j)) - 1);
    const __m512i taken = _mm512_slli_epi32(_mm512_loadu_si512(f.weight_sums + j), 7);
    const __m512 scales = _mm512_loadu_ps(f.weight_scales + j);
    const __m512 start = f.bias ? _mm512_maskz_loadu_ps(mask, f.bias + j) : _mm512_setzero_ps();
    for (std::int64_t r = 0; r < f.rows; ++r) {
      const __m512i sum = _mm512_sub_epi32(_mm512_load_si512(&block[r][j]), taken);
      const __m512 scaled = _mm512_mul_ps(_mm512_set1_ps(f.row_scales[r]), scales);
      _mm512_mask_storeu_ps(f.y + r * f.stride + j, mask, _mm512_fmadd_ps(_mm512_cvtepi32_ps(sum), scaled, start));
    }
  }
}

/// Computes R rows of a block of sums (see Block) with vectors of 512 bits.
template <class Dot, int R>
HEED_AVX512 void multiply_rows_512(const std::uint8_t* x, std::int64_t depth, std::int64_t part,
                                   const std::int8_t* panels, std::int32_t (*block)[kColumns]) {
  const std::int8_t* const right = panels + kPanel * depth;
  __m512i sums[R][2];
  HEED_UNROLL
  for (int r = 0; r < R; ++r) sums[r][0] = sums[r][1] = _mm512_setzero_si512();
  for (std::int64_t k = 0; k < part; k += kStep) {
    const __m512i w0 = _mm512_load_si512(panels + k * kPanel), w1 = _mm512_load_si512(right + k * kPanel);
    HEED_UNROLL
    for (int r = 0; r < R; ++r) {
      const __m512i four_of_x = _mm512_set1_epi32(load_four(x + r * depth + k));
      Dot::add(sums[r][0], four_of_x, w0);
      Dot::add(sums[r][1], four_of_x, w1);
    }
  }
  HEED_UNROLL
  for (int r = 0; r < R; ++r) {
    _mm512_store_si512(&block[r][0], sums[r][0]);
    _mm512_store_si512(&block[r][kPanel], sums[r][1]);
  }
}

/// Computes a block of sums (see Block) with vectors of 512 bits, eight rows at a time.
template <class Dot>
HEED_AVX512 void multiply_512(const std::uint8_t* x, std::int64_t rows, std::int64_t depth, std::int64_t part,
                              const std::int8_t* panels, Block& block) {
  std::int64_t r = 0;
  for (; r + 8 <= rows; r += 8) multiply_rows_512<Dot, 8>(x + r * depth, depth, part, panels, block + r);
  if (r + 4 <= rows) multiply_rows_512<Dot, 4>(x + r * depth, depth, part, panels, block + r), r += 4;
  if (r + 2 <= rows) multiply_rows_512<Dot, 2>(x + r * depth, depth, part, panels, block + r), r += 2;
  if (r < rows) multiply_rows_512<Dot, 1>(x + r * depth, depth, part, panels, block + r);
}
#undef HEED_UNROLL

HEED_AVX512 void add_rest_avx512(const Int8Rest& rest, std::int64_t depth, const std::int8_t* panels,
                                 std::int32_t* row_of_block) {
  const std::int8_t* const right = panels + kPanel * depth;
  const __m512i start = _mm512_set1_epi32(rest.start);
  __m512i left_sums = _mm512_add_epi32(_mm512_load_si512(row_of_block), start);
  __m512i right_sums = _mm512_add_epi32(_mm512_load_si512(row_of_block + kPanel), start);
  for (const Int8RestStep* step = rest.steps; step != rest.steps + rest.count; ++step) {
    const __m512i four_of_x = _mm512_set1_epi32(step->four);
    DotInThree::add(left_sums, four_of_x, _mm512_load_si512(panels + step->k * kPanel));
    DotInThree::add(right_sums, four_of_x, _mm512_load_si512(right + step->k * kPanel));
  }
  _mm512_store_si512(row_of_block, left_sums);
  _mm512_store_si512(row_of_block + kPanel, right_sums);
}

/// Computes a block of integer sums (see Block) with AMX's tiles: four tiles of 16 x 16 sums, or two where there are at
/// most 16 rows.
HEED_AMX void multiply_amx(const std::uint8_t* x, std::int64_t rows, std::int64_t depth, std::int64_t part,
                           const std::int8_t* panels, Block& block) {
  const std::int8_t* const right = panels + kPanel * depth;
  const auto stride = static_cast<std::size_t>(depth);
  constexpr std::size_t kBlockStride = kColumns * sizeof(std::int32_t);
  const bool lower = rows > 16;
  _tile_zero(0);
  _tile_zero(1);
  if (lower) {
    _tile_zero(2);
    _tile_zero(3);
  }
  for (std::int64_t k = 0; k < part; k += kTileDepth) {
    _tile_loadd(4, x + k, stride);
    _tile_loadd(6, panels + k * kPanel, 64);
    _tile_loadd(7, right + k * kPanel, 64);
    _tile_dpbusd(0, 4, 6);
    _tile_dpbusd(1, 4, 7);
    if (lower) {
      _tile_loadd(5, x + 16 * depth + k, stride);
      _tile_dpbusd(2, 5, 6);
      _tile_dpbusd(3, 5, 7);
    }
  }
  _tile_stored(0, &block[0][0], kBlockStride);
  _tile_stored(1, &block[0][kPanel], kBlockStride);
  if (lower) {
    _tile_stored(2, &block[16][0], kBlockStride);
    _tile_stored(3, &block[16][kPanel], kBlockStride);
  }
}

/// Prepares the AMX tile registers of the calling thread; close_tiles() releases them.
HEED_AMX void open_tiles() {
  _tile_loadconfig(&kTileShapes);
}
HEED_AMX void close_tiles() {
  _tile_release();
}

#endif

/// The functions that compute a product of 8-bit integers with one instruction set, such as AVX2.
struct Kernels {
  Multiply multiply;
  float (*quantize_row)(const float* x, std::int64_t k, std::int64_t depth, std::uint8_t* out);
  void (*finish)(const Block& block, const Finish& f);
  /// Null where 128 is added to X. Otherwise 128 is added to W, and this function adds to a row of a block of sums the
  /// product with the rest of the row of X, and subtracts the 128.
  void (*add_rest)(const Int8Rest& rest, std::int64_t depth, const std::int8_t* panels, std::int32_t* row_of_block);
};

/// Returns the functions for products of rows that are filled up to `depth` numbers.
Kernels kernels_of(InstructionSet set, [[maybe_unused]] std::int64_t depth) {
  switch (set) {
#if HEED_X86
    // Sums that do not fit 32 bits are left to the portable function: no model of useful size has them.
    case InstructionSet::avx2:
      if (depth > kMostPart) return {multiply_portable, quantize_row_avx2, finish_avx2, nullptr};
      return {multiply_256<DotInThree, 2>, quantize_row_avx2, finish_avx2, add_rest_avx2};
    case InstructionSet::avx512:
      if (depth > kMostPart) return {multiply_portable, quantize_row_avx512, finish_avx512, nullptr};
      return {multiply_512<DotInThree>, quantize_row_avx512, finish_avx512, add_rest_avx512};
    case InstructionSet::avx2_vnni:
      return {multiply_256<DotVnni, 3>, quantize_row_avx2, finish_avx2, nullptr};
    case InstructionSet::avx512_vnni:
    case InstructionSet::avx512_bf16:
      return {multiply_512<DotVnni>, quantize_row_avx512, finish_avx512, nullptr};
    case InstructionSet::amx:
      return {multiply_amx, quantize_row_avx512, finish_avx512, nullptr};
#endif
    default:
      return {multiply_portable, quantize_row_portable, finish_portable, nullptr};
  }
}

/// Computes a block of Y where k is so large that a sum does not fit into 32 bits: k is cut into parts, and the sums of
/// the parts are added up in 64 bits.
void multiply_wide(const Multiply multiply, const std::uint8_t* x, std::int64_t depth, const std::int8_t* panels,
                   Block& block, const Finish& f) {
  std::int64_t sums[kRows][kColumns] = {};
  for (std::int64_t k = 0; k < depth; k += kMostPart) {
    multiply(x + k, f.rows, depth, std::min(kMostPart, depth - k), panels + k * kPanel, block);
    for (std::int64_t r = 0; r < f.rows; ++r)
      for (std::int64_t j = 0; j < kColumns; ++j) sums[r][j] += block[r][j];
  }
  for (std::int64_t r = 0; r < f.rows; ++r)
    for (std::int64_t j = 0; j < f.columns; ++j)
      f.y[r * f.stride + j] = std::fma(static_cast<float>(sums[r][j] - kZero * std::int64_t{f.weight_sums[j]}),
                                       f.row_scales[r] * f.weight_scales[j], f.bias ? f.bias[j] : 0);
}

}  // namespace

std::int64_t int8_weight_bytes(std::int64_t n, std::int64_t k) {
  return padded(n, kColumns) * (8 + padded(k, kTileDepth));
}

void quantize_weight(std::int64_t n, std::int64_t k, std::int64_t begin, std::int64_t end, const float* rows,
                     std::int64_t stride, std::byte* out) {
  if (k > kInt8MostDepth)
    throw Error("internal: gemm_int8: a weight of " + std::to_string(k) + " columns (at most " +
                std::to_string(kInt8MostDepth) + ")");
  const auto parts = parts_of(out, n);
  const std::int64_t depth = padded(k, kTileDepth), steps = depth / kStep;
  const Kernels kernels = kernels_of(instruction_set(), depth);
  // quantize_row() writes the byte 128 + q for the integer q; inverting the highest bit of the byte subtracts the 128.
  const std::uint32_t flip = kernels.add_rest ? 0 : 0x80808080u;
  std::vector<std::uint8_t> panel(static_cast<std::size_t>(kPanel * depth));
  for (std::int64_t first = begin; first < padded(end, kColumns); first += kPanel) {
    for (std::int64_t j = 0; j < kPanel; ++j) {
      const std::int64_t row = first + j;
      std::uint8_t* const values = panel.data() + j * depth;
      const bool there = row < end;
      if (!there) std::fill(values, values + depth, static_cast<std::uint8_t>(kZero));
      parts.scales[row] = there ? kernels.quantize_row(rows + (row - begin) * stride, k, depth, values) : 0;
      std::int32_t sum = 0;
      if (!kernels.add_rest)
        for (std::int64_t i = 0; i < depth; ++i) sum += values[i] - kZero;
      parts.sums[row] = sum;
    }
    // Copies the bytes to their place in the panel, four neighbours of a row at a time.
    std::int8_t* const to = parts.panels + first * depth;
    for (std::int64_t i = 0; i < steps; ++i)
      for (std::int64_t j = 0; j < kPanel; ++j) {
        std::uint32_t four = 0;
        std::memcpy(&four, panel.data() + j * depth + i * kStep, sizeof four);
        four ^= flip;
        std::memcpy(to + (i * kPanel + j) * kStep, &four, sizeof four);
      }
  }
}

Int8Activations quantize_activations(Arena& arena, std::int64_t rows, std::int64_t k, const float* x,
                                     std::int64_t stride) {
  const std::int64_t depth = padded(k, kTileDepth), all_rows = padded(rows, 16);
  auto* const values = reinterpret_cast<std::uint8_t*>(arena.tensor<float>({all_rows, depth / 4}).data());
  float* const scales = arena.tensor<float>({rows}).data();
  const Kernels kernels = kernels_of(instruction_set(), depth);
  for (std::int64_t r = 0; r < rows; ++r)
    scales[r] = kernels.quantize_row(x + r * stride, k, depth, values + r * depth);
  std::fill(values + rows * depth, values + all_rows * depth, std::uint8_t{0});
  Int8Rest* rests = nullptr;
#if HEED_X86
  if (kernels.add_rest) {
    rests = arena.tensor<Int8Rest>({rows}).data();
    // The rests of a row follow those of the row before, so that memory is touched only as far as there are rests.
    Int8RestStep* next = arena.tensor<Int8RestStep>({rows, depth / kStep}).data();
    for (std::int64_t r = 0; r < rows; ++r) {
      rests[r] = split_row(values + r * depth, depth, next);
      next += rests[r].count;
    }
  }
#endif
  return {values, scales, rows, k, rests};
}

void gemm_int8(const Int8Activations& x, std::int64_t n, std::int64_t begin, std::int64_t end, Int8Weight weight,
               const float* bias, float* y, std::int64_t y_stride) {
  const InstructionSet set = instruction_set();
  const bool tiles = set == InstructionSet::amx && x.rows > kFewRows;
  const std::int64_t depth = padded(x.k, kTileDepth);
  const auto [multiply, quantize_row, finish, add_rest] =
      kernels_of(set == InstructionSet::amx && !tiles ? InstructionSet::avx512_vnni : set, depth);
  const auto parts = parts_of(weight.data, n);
#if HEED_X86
  if (tiles) open_tiles();
#endif
  alignas(64) Block block;
  for (std::int64_t j = begin; j < end; j += kColumns)
    for (std::int64_t r = 0; r < x.rows; r += kRows) {
      const std::int64_t count = std::min(kRows, x.rows - r);
      const std::uint8_t* const rows = x.values + r * depth;
      const std::int8_t* const panels = parts.panels + j * depth;
      const Finish f{parts.sums + j,
                     parts.scales + j,
                     x.scales + r,
                     bias ? bias + j : nullptr,
                     count,
                     std::min(kColumns, n - j),
                     y + r * y_stride + j - begin,
                     y_stride};
      if (depth > kMostPart) {
        multiply_wide(multiply, rows, depth, panels, block, f);
        continue;
      }
      multiply(rows, count, depth, depth, panels, block);
      if (add_rest)
        for (std::int64_t i = 0; i < count; ++i) add_rest(x.rests[r + i], depth, panels, block[i]);
      finish(block, f);
    }
#if HEED_X86
  if (tiles) close_tiles();
#endif
}

}  // namespace heed
