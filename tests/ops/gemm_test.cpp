#include "heed/ops/gemm/gemm.h"

#include <doctest/doctest.h>

#include <cmath>
#include <limits>
#include <vector>

#include "heed/base/random.h"

using namespace heed;

namespace {

/// A matrix of random numbers, in float32 and in double. Between the rows lie numbers that are NaN, and that no product
/// may use.
class Matrix {
 public:
  Matrix(std::int64_t rows, std::int64_t columns, std::int64_t stride, std::uint64_t seed)
      : stride_(stride),
        floats_(static_cast<std::size_t>(rows * stride), std::numeric_limits<float>::quiet_NaN()),
        doubles_(floats_.size(), std::numeric_limits<double>::quiet_NaN()) {
    const RandomStream stream(seed, RandomUse::initialisation);
    for (std::int64_t row = 0; row < rows; ++row)
      for (std::int64_t column = 0; column < columns; ++column) {
        const auto i = static_cast<std::size_t>(row * stride + column);
        floats_[i] = static_cast<float>(stream.normal(i));
        doubles_[i] = floats_[i];
      }
  }

  GemmOperand<float> in_float(bool transposed) const { return {floats_.data(), stride_, transposed}; }
  GemmOperand<double> in_double(bool transposed) const { return {doubles_.data(), stride_, transposed}; }
  std::vector<float> floats() const { return floats_; }
  std::vector<double> doubles() const { return doubles_; }

 private:
  std::int64_t stride_;
  std::vector<float> floats_;
  std::vector<double> doubles_;
};

/// Compares a float32 product with the same product in double. `gap` more elements than a row has lie from row to row.
void check(std::int64_t m, std::int64_t n, std::int64_t k, bool a_transposed, bool b_transposed, std::int64_t gap,
           float beta) {
  CAPTURE(m);
  CAPTURE(n);
  CAPTURE(k);
  CAPTURE(a_transposed);
  CAPTURE(b_transposed);
  CAPTURE(gap);
  CAPTURE(beta);
  const std::int64_t a_columns = a_transposed ? m : k, b_columns = b_transposed ? k : n, c_stride = n + gap;
  const Matrix a(a_transposed ? k : m, a_columns, a_columns + gap, 1),
      b(b_transposed ? n : k, b_columns, b_columns + gap, 2), before(m, n, c_stride, 3);
  std::vector<float> c = before.floats();
  std::vector<double> expected = before.doubles();
  Arena arena;
  CpuContext device{arena};
  gemm(device, m, n, k, 0.5F, a.in_float(a_transposed), b.in_float(b_transposed), beta, c.data(), c_stride);
  gemm(device, m, n, k, 0.5, a.in_double(a_transposed), b.in_double(b_transposed), static_cast<double>(beta),
       expected.data(), c_stride);
  CHECK(arena.used() == 0);

  // The partial sums of an element are about as large as the root of k, or smaller. Each of the k additions rounds by
  // at most 2^-24 of such a sum, up or down at random, so that the errors add up to about k 2^-24.
  const double bound = 8 * static_cast<double>(k) * 0x1p-24;
  std::int64_t wrong = 0;
  for (std::int64_t row = 0; row < m; ++row)
    for (std::int64_t column = 0; column < c_stride; ++column) {
      const auto i = static_cast<std::size_t>(row * c_stride + column);
      wrong += !(column < n ? std::abs(c[i] - expected[i]) <= bound : std::isnan(c[i]));
    }
  CHECK(wrong == 0);
}

}  // namespace

TEST_CASE("float32 products equal those in double, also where the rows of an operand share the places of a cache") {
  for (const bool a_transposed : {false, true})
    for (const bool b_transposed : {false, true})
      for (const std::int64_t width : {128, 512, 1024}) {
        // Large enough, and too small, for copies of the operands.
        check(256, width, 70, a_transposed, b_transposed, 0, 0);
        check(63, width, 33, a_transposed, b_transposed, 0, 1);
        check(width, 130, 70, a_transposed, b_transposed, 0, 1);
        check(130, 65, width, a_transposed, b_transposed, 0, 1);
        // A part of a wider matrix, whose rows begin 1,024 elements apart.
        check(256, width - 28, 70, a_transposed, b_transposed, 1024 - width + 28, 1);
        check(260, 130, width - 28, a_transposed, b_transposed, 1024 - width + 28, 0);
      }
}
