// Products of matrices that are small enough for the first- or second-level cache, such as the matrices of one
// attention head. For these the packing and the checks of a BLAS library would cost more than the product itself. Each
// .cpp file with kernels includes this file once for each instruction set; the unusual include guard below allows that.
#if defined(HEED_OPS_SMALL_GEMM_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef HEED_OPS_SMALL_GEMM_INL_H_
#undef HEED_OPS_SMALL_GEMM_INL_H_
#else
#define HEED_OPS_SMALL_GEMM_INL_H_
#endif

#include <hwy/highway.h>

#include <algorithm>
#include <cstdint>

#include "heed/ops/simd-inl.h"

HWY_BEFORE_NAMESPACE();
namespace heed::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

/// The left matrix A of a product: element (i, k) is data[i * row + k * column]. Where `row` is 1 and `column` is the
/// stride of the stored matrix, A is the transpose of the stored matrix.
template <class T>
struct LeftMatrix {
  const T* data;
  std::int64_t row, column;
};

/// Computes one tile of the product c = a b, or of c += a b where `add` is true. The tile has R rows and C vectors of L
/// columns, and its sums stay in registers. `depth` is the number of columns of a.
template <int R, int C, std::int64_t L, class T>
HWY_INLINE void product_tile(std::int64_t depth, LeftMatrix<T> a, const T* HWY_RESTRICT b, std::int64_t b_stride,
                             T* HWY_RESTRICT c, std::int64_t c_stride, bool add) {
  const hn::CappedTag<T, static_cast<std::size_t>(L)> d;
  using V = hn::Vec<decltype(d)>;
  V sums[R][C];
  for (int r = 0; r < R; ++r)
    for (int j = 0; j < C; ++j) sums[r][j] = hn::Zero(d);
  for (std::int64_t k = 0; k < depth; ++k) {
    V right[C];
    for (int j = 0; j < C; ++j) right[j] = hn::LoadU(d, b + k * b_stride + j * L);
    for (int r = 0; r < R; ++r) {
      const V left = hn::Set(d, a.data[r * a.row + k * a.column]);
      for (int j = 0; j < C; ++j) sums[r][j] = hn::MulAdd(left, right[j], sums[r][j]);
    }
  }
  for (int r = 0; r < R; ++r)
    for (int j = 0; j < C; ++j) {
      T* out = c + r * c_stride + j * L;
      hn::StoreU(add ? hn::Add(hn::LoadU(d, out), sums[r][j]) : sums[r][j], d, out);
    }
}

/// Computes R rows of the product c = a b, or of c += a b where `add` is true, in tiles from left to right. `n` is the
/// number of columns of c; `depth` is the number of columns of a.
template <int R, class T>
HWY_INLINE void product_rows(std::int64_t n, std::int64_t depth, LeftMatrix<T> a, const T* b, std::int64_t b_stride,
                             T* c, std::int64_t c_stride, bool add) {
  constexpr std::int64_t kWhole = kLanes<T>;
  std::int64_t j = 0;
  for (; j + 2 * kWhole <= n; j += 2 * kWhole)
    product_tile<R, 2, kWhole>(depth, a, b + j, b_stride, c + j, c_stride, add);
  if (j + kWhole <= n) {
    product_tile<R, 1, kWhole>(depth, a, b + j, b_stride, c + j, c_stride, add);
    j += kWhole;
  }
  if constexpr (kWhole > 8) {
    if (j + 8 <= n) {
      product_tile<R, 1, 8>(depth, a, b + j, b_stride, c + j, c_stride, add);
      j += 8;
    }
  }
  for (; j < n; ++j)
    for (int r = 0; r < R; ++r)
      product_tile<1, 1, 1>(depth, LeftMatrix<T>{a.data + r * a.row, a.row, a.column}, b + j, b_stride,
                            c + r * c_stride + j, c_stride, add);
}

/// Computes the product c [m, n] = a b, or c += a b where `add` is true, for a [m, depth] and b [depth, n]. The rows
/// are computed in groups of at most six rows and of nearly equal size, since the sums of six rows fit the registers.
template <class T>
HWY_INLINE void small_gemm(std::int64_t m, std::int64_t n, std::int64_t depth, LeftMatrix<T> a, const T* b,
                           std::int64_t b_stride, T* c, std::int64_t c_stride, bool add) {
  std::int64_t groups = (m + 5) / 6;
  while (groups > 0) {
    const std::int64_t rows = (m + groups - 1) / groups;
    switch (rows) {
      case 1:
        product_rows<1>(n, depth, a, b, b_stride, c, c_stride, add);
        break;
      case 2:
        product_rows<2>(n, depth, a, b, b_stride, c, c_stride, add);
        break;
      case 3:
        product_rows<3>(n, depth, a, b, b_stride, c, c_stride, add);
        break;
      case 4:
        product_rows<4>(n, depth, a, b, b_stride, c, c_stride, add);
        break;
      case 5:
        product_rows<5>(n, depth, a, b, b_stride, c, c_stride, add);
        break;
      default:
        product_rows<6>(n, depth, a, b, b_stride, c, c_stride, add);
        break;
    }
    a.data += rows * a.row;
    c += rows * c_stride;
    m -= rows;
    --groups;
  }
}

/// Returns n rounded up to a multiple of the number of elements in a full vector.
template <class T>
HWY_INLINE std::int64_t whole_vectors(std::int64_t n) {
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(hn::ScalableTag<T>()));
  return (n + lanes - 1) / lanes * lanes;
}

#if HWY_TARGET != HWY_SCALAR
/// Loads a vector of `blocks` times 128 bits from as many rows: the first 128 bits from `rows[0] + at`, the next from
/// `rows[step] + at`, and so on.
template <int blocks, class T>
HWY_INLINE auto load_blocks(const T* const* rows, std::int64_t step, std::int64_t at) {
  const hn::CappedTag<T, blocks * 16 / sizeof(T)> d;
  if constexpr (blocks == 1)
    return hn::LoadU(d, rows[0] + at);
  else
    return hn::Combine(d, load_blocks<blocks / 2>(rows + blocks / 2 * step, step, at),
                       load_blocks<blocks / 2>(rows, step, at));
}
#endif

/// Transposes and scales a matrix x [rows, columns]: out = factor x^T, with `stride` elements from row to row of `out`.
/// Each row of `out` is filled with zeros up to a whole number of vectors. `zeros` points to `columns` zeros, which are
/// read in place of rows after the last row of x.
template <class T>
HWY_INLINE void transpose_scaled(const T* HWY_RESTRICT x, std::int64_t x_stride, std::int64_t rows,
                                 std::int64_t columns, T factor, const T* HWY_RESTRICT zeros, T* HWY_RESTRICT out,
                                 std::int64_t stride) {
  constexpr std::int64_t kWhole = kLanes<T>;
  for (std::int64_t r = 0; r < rows; r += kWhole) {
    const T* from[kWhole];
    for (std::int64_t i = 0; i < kWhole; ++i) from[i] = r + i < rows ? x + (r + i) * x_stride : zeros;
    std::int64_t c = 0;
#if HWY_TARGET != HWY_SCALAR
    // A block of kBlock x kBlock elements is transposed within 128 bits. Each vector holds a row of several blocks,
    // which lie one below the other in x and beside each other in the result.
    constexpr auto kBlock = static_cast<std::int64_t>(16 / sizeof(T));
    const hn::ScalableTag<T> d;
    const auto scale = hn::Set(d, factor);
    for (; c + kBlock <= columns; c += kBlock) {
      const auto row = [&](int i)
                           HWY_ATTR { return hn::Mul(load_blocks<kWhole / kBlock>(from + i, kBlock, c), scale); };
      T* to = out + c * stride + r;
      if constexpr (sizeof(T) == 4) {
        const auto a = row(0), b = row(1), e = row(2), f = row(3);
        const auto ae_low = hn::InterleaveLower(d, a, e), ae_high = hn::InterleaveUpper(d, a, e);
        const auto bf_low = hn::InterleaveLower(d, b, f), bf_high = hn::InterleaveUpper(d, b, f);
        hn::StoreU(hn::InterleaveLower(d, ae_low, bf_low), d, to);
        hn::StoreU(hn::InterleaveUpper(d, ae_low, bf_low), d, to + stride);
        hn::StoreU(hn::InterleaveLower(d, ae_high, bf_high), d, to + 2 * stride);
        hn::StoreU(hn::InterleaveUpper(d, ae_high, bf_high), d, to + 3 * stride);
      } else {
        const auto a = row(0), b = row(1);
        hn::StoreU(hn::InterleaveLower(d, a, b), d, to);
        hn::StoreU(hn::InterleaveUpper(d, a, b), d, to + stride);
      }
    }
#endif
    for (; c < columns; ++c)
      for (std::int64_t i = 0; i < kWhole; ++i) out[c * stride + r + i] = factor * from[i][c];
  }
}

}  // namespace heed::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

// The file is included once for each instruction set, but the definitions below do not depend on the instruction set.
// This guard compiles them only once.
#ifndef HEED_OPS_SMALL_GEMM_ONCE
#define HEED_OPS_SMALL_GEMM_ONCE
namespace heed {

/// Returns the stride, the number of elements from row to row, of a scratch matrix with `columns` columns. The stride
/// is a multiple of every vector length and an odd number of cache lines: with an even number, the elements of a column
/// would compete for a few sets of the cache.
template <class T>
constexpr std::int64_t scratch_stride(std::int64_t columns) {
  constexpr std::int64_t kLine = 64 / sizeof(T);
  return ((columns + kLine - 1) / kLine | 1) * kLine;
}

}  // namespace heed
#endif

#endif  // HEED_OPS_SMALL_GEMM_INL_H_
