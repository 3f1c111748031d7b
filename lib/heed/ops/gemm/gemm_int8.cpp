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
#include "heed/tensor/tensor.h"

// W lies in panels of 16 rows (columns of Y): [panel][k / 4][16][4 neighbours along k], so that 64 bytes hold a step of
// four along k for 16 columns, which is what VNNI takes, and 64 such bytes below each other are a tile of AMX. X
// becomes unsigned, 128 more than its value, because that is what the dot products want on their left; sums of W's rows
// take the 128s out again. k and n are filled up with zeros.

namespace heed {
namespace {

constexpr std::int64_t kPanel = 16, kStep = 4, kDepth = 64;  // columns of a panel; along k in a step, and in a tile
constexpr std::int64_t kColumns = kInt8Columns, kRows = 32;  // of Y at a time
static_assert(kColumns == 2 * kPanel);
/// Up to so many rows of X, AMX's tiles are mostly empty, and dot products are as fast without their preparations.
constexpr std::int64_t kFewRows = 4;
constexpr int kZero = 128;  // of X

std::int64_t padded(std::int64_t size, std::int64_t multiple) {
  return (size + multiple - 1) / multiple * multiple;
}

/// The parts of a weight.
template <class Byte, class Float, class Int>
struct WeightParts {
  Float* scales;  ///< [n]
  Int* sums;      ///< [n] of the integers in a row
  Byte* panels;   ///< [n / 16][k / 4][16][4]
};

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

/// The sums of kRows rows of X with kColumns columns, from the first of both on.
using Block = std::int32_t[kRows][kColumns];

/// Numbers along k in one sum of 32 bits: 65,536 products of at most 255 x 127 are below 2^31.
constexpr std::int64_t kMostPart = 65'536;
static_assert(kMostPart % kDepth == 0 && kMostPart * 255 * 127 <= std::numeric_limits<std::int32_t>::max());

/// X in 8 bits [rows][depth] and the panels of a block: depth is a multiple of kDepth, `rows` at most kRows (those of
/// the memory may be more, up to a multiple of 16). Multiplies the first `part` numbers along k (a multiple of kDepth,
/// at most kMostPart).
using Multiply = void (*)(const std::uint8_t* x, std::int64_t rows, std::int64_t depth, std::int64_t part,
                          const std::int8_t* panels, Block& block);

void multiply_portable(const std::uint8_t* x, std::int64_t rows, std::int64_t depth, std::int64_t part,
                       const std::int8_t* panels, Block& block) {
  for (std::int64_t r = 0; r < rows; ++r)
    for (std::int64_t j = 0; j < kColumns; ++j) {
      std::int32_t sum = 0;
      const std::int8_t* w = panels + j / kPanel * kPanel * depth + j % kPanel * kStep;
      for (std::int64_t i = 0; i < part; ++i)
        sum += std::int32_t{x[r * depth + i]} * w[i / kStep * kPanel * kStep + i % kStep];
      block[r][j] = sum;
    }
}

/// q = x / scale rounded to the nearest, ties to even, as 128 + q; returns the scale.
float quantize_row_portable(const float* x, std::int64_t k, std::int64_t depth, std::uint8_t* out) {
  float most = 0, zero = 0;
  for (std::int64_t i = 0; i < k; ++i) most = std::max(most, std::abs(x[i])), zero += x[i] * 0;
  const float inverse = most > 0 ? 127.0F / most : 0;
  for (std::int64_t i = 0; i < k; ++i) out[i] = static_cast<std::uint8_t>(kZero + std::lrintf(x[i] * inverse));
  std::fill(out + k, out + depth, static_cast<std::uint8_t>(kZero));
  return most / 127.0F + zero;  // where x is not finite, zero is no number
}

/// What a block of Y is made of besides its sums: (sum - 128 sum of w) scale_x scale_w + b.
struct Finish {
  const std::int32_t* weight_sums;  ///< [kColumns], as weight_scales
  const float *weight_scales, *row_scales;
  const float* bias;  ///< [columns] or null
  std::int64_t rows, columns;
  float* y;
  std::int64_t stride;
};

void finish_portable(const Block& block, const Finish& f) {
  for (std::int64_t r = 0; r < f.rows; ++r)
    for (std::int64_t j = 0; j < f.columns; ++j)
      f.y[r * f.stride + j] = std::fma(static_cast<float>(block[r][j] - kZero * f.weight_sums[j]),
                                       f.row_scales[r] * f.weight_scales[j], f.bias ? f.bias[j] : 0);
}

#if HEED_X86
#define HEED_AVX2 __attribute__((target("avx2,fma")))
#define HEED_AVX_VNNI __attribute__((target("avx2,fma,avxvnni")))
#define HEED_AVX512 __attribute__((target("avx512f,avx512bw,avx512vl,avx512vnni")))
#define HEED_AMX __attribute__((target("avx512f,avx512bw,avx512vl,avx512vnni,amx-tile,amx-int8")))

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
  const float inverse = most > 0 ? 127.0F / most : 0;
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
  alignas(32) float start[kColumns] = {}, out[kColumns];
  if (f.bias) std::copy_n(f.bias, f.columns, start);
  for (std::int64_t r = 0; r < f.rows; ++r) {
    const __m256 factor = _mm256_set1_ps(f.row_scales[r]);
    for (std::int64_t j = 0; j < kColumns; j += 8) {
      const __m256i taken =
          _mm256_slli_epi32(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(f.weight_sums + j)), 7);
      const __m256i sum = _mm256_sub_epi32(_mm256_load_si256(reinterpret_cast<const __m256i*>(&block[r][j])), taken);
      const __m256 scaled = _mm256_mul_ps(factor, _mm256_loadu_ps(f.weight_scales + j));
      _mm256_store_ps(out + j, _mm256_fmadd_ps(_mm256_cvtepi32_ps(sum), scaled, _mm256_load_ps(start + j)));
    }
    std::copy_n(out, f.columns, f.y + r * f.stride);
  }
}

/// Four neighbours along k times eight columns of four, added to the eight sums, as VNNI does it, by 16-bit products.
HEED_AVX2 inline __m256i dot4_avx2(__m256i sums, __m256i x, __m256i w) {
  const __m256i low = _mm256_madd_epi16(_mm256_cvtepu8_epi16(_mm256_castsi256_si128(x)),
                                        _mm256_cvtepi8_epi16(_mm256_castsi256_si128(w)));
  const __m256i high = _mm256_madd_epi16(_mm256_cvtepu8_epi16(_mm256_extracti128_si256(x, 1)),
                                         _mm256_cvtepi8_epi16(_mm256_extracti128_si256(w, 1)));
  // low: sums of two for columns 0 0 1 1 | 2 2 3 3, high: for 4 to 7.
  const __m256i both = _mm256_hadd_epi32(low, high);  // 0 1 4 5 | 2 3 6 7
  return _mm256_add_epi32(sums, _mm256_permute4x64_epi64(both, 0xD8));
}
HEED_AVX_VNNI inline __m256i dot4_avx_vnni(__m256i sums, __m256i x, __m256i w) {
  return _mm256_dpbusd_avx_epi32(sums, x, w);
}

/// Three rows with the four vectors of 32 columns. (A template over the dot product would lose its target.)
#define HEED_MULTIPLY_256(NAME, TARGET, DOT4)                                                                         \
  TARGET void NAME(const std::uint8_t* x, std::int64_t rows, std::int64_t depth, std::int64_t part,                   \
                   const std::int8_t* panels, Block& block) {                                                         \
    const std::int8_t* const right = panels + kPanel * depth;                                                         \
    for (std::int64_t r = 0; r < rows; r += 3) {                                                                      \
      const std::uint8_t* row[3];                                                                                     \
      for (std::int64_t i = 0; i < 3; ++i) row[i] = x + std::min(r + i, rows - 1) * depth;                            \
      __m256i sums[3][4];                                                                                             \
      for (auto& line : sums) line[0] = line[1] = line[2] = line[3] = _mm256_setzero_si256();                         \
      for (std::int64_t k = 0; k < part; k += kStep) {                                                                \
        const auto* left = reinterpret_cast<const __m256i*>(panels + k * kPanel);                                     \
        const auto* other = reinterpret_cast<const __m256i*>(right + k * kPanel);                                     \
        const __m256i w[4] = {_mm256_load_si256(left), _mm256_load_si256(left + 1), _mm256_load_si256(other),         \
                              _mm256_load_si256(other + 1)};                                                          \
        for (int i = 0; i < 3; ++i) {                                                                                 \
          std::int32_t four;                                                                                          \
          std::copy_n(row[i] + k, 4, reinterpret_cast<std::uint8_t*>(&four));                                         \
          const __m256i four_of_x = _mm256_set1_epi32(four);                                                          \
          for (int j = 0; j < 4; ++j) sums[i][j] = DOT4(sums[i][j], four_of_x, w[j]);                                 \
        }                                                                                                             \
      }                                                                                                               \
      for (std::int64_t i = 0; i < std::min<std::int64_t>(3, rows - r); ++i)                                          \
        for (int j = 0; j < 4; ++j) _mm256_store_si256(reinterpret_cast<__m256i*>(&block[r + i][8 * j]), sums[i][j]); \
    }                                                                                                                 \
  }
HEED_MULTIPLY_256(multiply_avx2, HEED_AVX2, dot4_avx2)
HEED_MULTIPLY_256(multiply_avx_vnni, HEED_AVX_VNNI, dot4_avx_vnni)
#undef HEED_MULTIPLY_256

HEED_AVX512 float quantize_row_avx512(const float* x, std::int64_t k, std::int64_t depth, std::uint8_t* out) {
  __m512 largest = _mm512_setzero_ps(), zeros = _mm512_setzero_ps();
  for (std::int64_t i = 0; i < k; i += 16) {
    const auto mask = static_cast<__mmask16>(k - i >= 16 ? 0xFFFF : (1 << (k - i)) - 1);
    const __m512 value = _mm512_maskz_loadu_ps(mask, x + i);
    largest = _mm512_max_ps(largest, _mm512_abs_ps(value));
    zeros = _mm512_fmadd_ps(value, _mm512_setzero_ps(), zeros);
  }
  const float most = _mm512_reduce_max_ps(largest);
  const __m512 factor = _mm512_set1_ps(most > 0 ? 127.0F / most : 0);
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

/// R rows with two panels.
template <int R>
HEED_AVX512 void multiply_rows_avx512(const std::uint8_t* x, std::int64_t depth, std::int64_t part,
                                      const std::int8_t* panels, std::int32_t (*block)[kColumns]) {
  const std::int8_t* const right = panels + kPanel * depth;
  __m512i sums[R][2];
  for (int r = 0; r < R; ++r) sums[r][0] = sums[r][1] = _mm512_setzero_si512();
  for (std::int64_t k = 0; k < part; k += kStep) {
    const __m512i w0 = _mm512_load_si512(panels + k * kPanel), w1 = _mm512_load_si512(right + k * kPanel);
    for (int r = 0; r < R; ++r) {
      std::int32_t four;
      std::copy_n(x + r * depth + k, 4, reinterpret_cast<std::uint8_t*>(&four));
      const __m512i four_of_x = _mm512_set1_epi32(four);
      sums[r][0] = _mm512_dpbusd_epi32(sums[r][0], four_of_x, w0);
      sums[r][1] = _mm512_dpbusd_epi32(sums[r][1], four_of_x, w1);
    }
  }
  for (int r = 0; r < R; ++r) {
    _mm512_store_si512(&block[r][0], sums[r][0]);
    _mm512_store_si512(&block[r][kPanel], sums[r][1]);
  }
}

HEED_AVX512 void multiply_avx512(const std::uint8_t* x, std::int64_t rows, std::int64_t depth, std::int64_t part,
                                 const std::int8_t* panels, Block& block) {
  std::int64_t r = 0;
  for (; r + 8 <= rows; r += 8) multiply_rows_avx512<8>(x + r * depth, depth, part, panels, block + r);
  if (r + 4 <= rows) multiply_rows_avx512<4>(x + r * depth, depth, part, panels, block + r), r += 4;
  if (r + 2 <= rows) multiply_rows_avx512<2>(x + r * depth, depth, part, panels, block + r), r += 2;
  if (r < rows) multiply_rows_avx512<1>(x + r * depth, depth, part, panels, block + r);
}

/// The shapes of AMX's eight tile registers (Intel 64 manual, palette 1): 16 rows of 64 bytes each. A constant, because
/// the intrinsic tells the compiler of its first bytes only.
struct alignas(64) TileShapes {
  std::uint8_t palette = 1, start_row = 0, reserved[14] = {};
  std::uint16_t bytes_per_row[16] = {64, 64, 64, 64, 64, 64, 64, 64};
  std::uint8_t rows[16] = {16, 16, 16, 16, 16, 16, 16, 16};
};
constexpr TileShapes kTileShapes;

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
  for (std::int64_t k = 0; k < part; k += kDepth) {
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

HEED_AMX void open_tiles() {
  _tile_loadconfig(&kTileShapes);
}
HEED_AMX void close_tiles() {
  _tile_release();
}

#endif

struct Kernels {
  Multiply multiply;
  float (*quantize_row)(const float* x, std::int64_t k, std::int64_t depth, std::uint8_t* out);
  void (*finish)(const Block& block, const Finish& f);
};

Kernels kernels_of(InstructionSet set) {
  switch (set) {
#if HEED_X86
    case InstructionSet::avx2:
    case InstructionSet::avx512:  // which has no dot products of integers
      return {multiply_avx2, quantize_row_avx2, finish_avx2};
    case InstructionSet::avx2_vnni:
      return {multiply_avx_vnni, quantize_row_avx2, finish_avx2};
    case InstructionSet::avx512_vnni:
    case InstructionSet::avx512_bf16:
      return {multiply_avx512, quantize_row_avx512, finish_avx512};
    case InstructionSet::amx:
      return {multiply_amx, quantize_row_avx512, finish_avx512};
#endif
    default:
      return {multiply_portable, quantize_row_portable, finish_portable};
  }
}

/// A block of Y where the sums do not fit 32 bits: those of parts of k, added up in 64.
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
  return padded(n, kColumns) * (8 + padded(k, kDepth));
}

void quantize_weight(std::int64_t n, std::int64_t k, std::int64_t begin, std::int64_t end, const float* rows,
                     std::int64_t stride, std::byte* out) {
  if (k > kInt8MostDepth)
    throw Error("internal: gemm_int8: a weight of " + std::to_string(k) + " columns (at most " +
                std::to_string(kInt8MostDepth) + ")");
  const auto parts = parts_of(out, n);
  const auto quantize_row = kernels_of(instruction_set()).quantize_row;
  const std::int64_t depth = padded(k, kDepth), steps = depth / kStep;
  std::vector<std::uint8_t> panel(static_cast<std::size_t>(kPanel * depth));
  for (std::int64_t first = begin; first < padded(end, kColumns); first += kPanel) {
    for (std::int64_t j = 0; j < kPanel; ++j) {
      const std::int64_t row = first + j;
      std::uint8_t* const values = panel.data() + j * depth;
      const bool there = row < end;
      if (!there) std::fill(values, values + depth, static_cast<std::uint8_t>(kZero));
      parts.scales[row] = there ? quantize_row(rows + (row - begin) * stride, k, depth, values) : 0;
      std::int32_t sum = 0;
      for (std::int64_t i = 0; i < depth; ++i) sum += values[i];
      parts.sums[row] = sum - kZero * static_cast<std::int32_t>(depth);
    }
    // Four neighbours at a time to where they belong; 128 less in each is the highest bit turned round.
    std::int8_t* const to = parts.panels + first * depth;
    for (std::int64_t i = 0; i < steps; ++i)
      for (std::int64_t j = 0; j < kPanel; ++j) {
        std::uint32_t four = 0;
        std::memcpy(&four, panel.data() + j * depth + i * kStep, sizeof four);
        four ^= 0x80808080u;
        std::memcpy(to + (i * kPanel + j) * kStep, &four, sizeof four);
      }
  }
}

Int8Activations quantize_activations(Arena& arena, std::int64_t rows, std::int64_t k, const float* x,
                                     std::int64_t stride) {
  const std::int64_t depth = padded(k, kDepth), all_rows = padded(rows, 16);
  auto* const values = reinterpret_cast<std::uint8_t*>(arena.tensor<float>({all_rows, depth / 4}).data());
  float* const scales = arena.tensor<float>({rows}).data();
  const auto quantize_row = kernels_of(instruction_set()).quantize_row;
  for (std::int64_t r = 0; r < rows; ++r) scales[r] = quantize_row(x + r * stride, k, depth, values + r * depth);
  std::fill(values + rows * depth, values + all_rows * depth, std::uint8_t{0});
  return {values, scales, rows, k};
}

void gemm_int8(const Int8Activations& x, std::int64_t n, std::int64_t begin, std::int64_t end, Int8Weight weight,
               const float* bias, float* y, std::int64_t y_stride) {
  const InstructionSet set = instruction_set();
  const bool tiles = set == InstructionSet::amx && x.rows > kFewRows;
  const auto [multiply, quantize_row, finish] =
      kernels_of(set == InstructionSet::amx && !tiles ? InstructionSet::avx512_vnni : set);
  const auto parts = parts_of(weight.data, n);
  const std::int64_t depth = padded(x.k, kDepth);
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
      finish(block, f);
    }
#if HEED_X86
  if (tiles) close_tiles();
#endif
}

}  // namespace heed
