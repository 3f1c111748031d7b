#include "heed/ops/gemm/gemm_bfloat16.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <tuple>
#include <utility>
#include <vector>

#include "heed/base/instruction_set.h"
#include "heed/ops/gemm/gemm.h"
#include "heed/tensor/bfloat16.h"

using namespace heed;

namespace {

using Numbers = std::vector<float>;

/// Returns numbers that look random, evenly spread over -3 ... 3.
Numbers numbers(std::size_t count, std::uint32_t seed) {
  Numbers out(count);
  std::uint32_t state = seed;
  for (float& x : out) {
    state = state * 1664525 + 1013904223;  // the linear congruential generator of Numerical Recipes
    x = static_cast<float>(static_cast<std::int32_t>(state)) * (3 * 0x1p-31F);
  }
  return out;
}

/// A product C = alpha A B + beta C of given sizes. check() compares gemm_bfloat16() with a product of the rounded
/// matrices that is computed in double.
struct Case {
  std::int64_t m, n, k;
  bool a_transposed, b_transposed;

  void check(float alpha, float beta) const {
    CAPTURE(m);
    CAPTURE(n);
    CAPTURE(k);
    CAPTURE(a_transposed);
    CAPTURE(b_transposed);
    CAPTURE(alpha);
    CAPTURE(beta);
    const std::int64_t a_stride = (a_transposed ? m : k) + 3, b_stride = (b_transposed ? k : n) + 2, c_stride = n + 5;
    const Numbers a = numbers(static_cast<std::size_t>((a_transposed ? k : m) * a_stride), 1);
    const Numbers b = numbers(static_cast<std::size_t>((b_transposed ? n : k) * b_stride), 2);
    const Numbers before = numbers(static_cast<std::size_t>(m * c_stride), 3);
    Numbers c = before;
    Arena arena;
    const Bfloat16Tiles right = bfloat16_tiles(arena, k, n, {b.data(), b_stride, b_transposed});
    gemm_bfloat16(arena, m, alpha, {a.data(), a_stride, a_transposed}, right, beta, c.data(), c_stride);
    REQUIRE(of_rounded(alpha, beta, a, a_stride, b, b_stride, before, c_stride) == c);

    // The product of two bfloat16 numbers is exact in float32. The k additions, and the two multiplications and the
    // addition by which alpha and beta come in, each round by at most half a unit in the last place. To first order, an
    // element's error is therefore at most (k + 3) / 2^24 times the sum of the absolute values that are added.
    const std::vector<double> exact = in_double(a, a_stride, b, b_stride, false),
                              absolute = in_double(a, a_stride, b, b_stride, true);
    const double rounding = static_cast<double>(k + 3) * 0x1p-24;
    for (std::int64_t i = 0; i < m; ++i)
      for (std::int64_t j = 0; j < c_stride; ++j) {
        const auto here = static_cast<std::size_t>(i * c_stride + j);
        if (j >= n) {
          if (c[here] != before[here]) FAIL("the product writes to the right of C");
          continue;
        }
        const auto element = static_cast<std::size_t>(i * n + j);
        const double kept = beta == 0 ? 0 : double(beta) * double(before[here]);
        const double error = std::abs(double(c[here]) - (double(alpha) * exact[element] + kept));
        const double bound = rounding * (std::abs(double(alpha)) * absolute[element] + std::abs(kept));
        if (!(error <= bound)) FAIL("an element of C is " << error << " off, with a bound of " << bound);
      }
  }

 private:
  /// Returns C of the product of a and b when a and b are rounded to bfloat16 before gemm_bfloat16() is called.
  Numbers of_rounded(float alpha, float beta, const Numbers& a, std::int64_t a_stride, const Numbers& b,
                     std::int64_t b_stride, Numbers c, std::int64_t c_stride) const {
    std::vector<Bfloat16> left(a.size()), right(b.size());
    convert_to_bfloat16(a.data(), std::ssize(a), left.data());
    convert_to_bfloat16(b.data(), std::ssize(b), right.data());
    Arena arena;
    gemm_bfloat16(alpha, bfloat16_left_operand(arena, m, k, GemmOperand<Bfloat16>{left.data(), a_stride, a_transposed}),
                  bfloat16_tiles(arena, k, n, GemmOperand<Bfloat16>{right.data(), b_stride, b_transposed}), beta,
                  c.data(), c_stride);
    return c;
  }

  /// Returns A B [m, n] of the matrices rounded to bfloat16, or of their absolute values, computed in double.
  std::vector<double> in_double(const Numbers& a, std::int64_t a_stride, const Numbers& b, std::int64_t b_stride,
                                bool absolute) const {
    const auto rounded = [absolute](const Numbers& x) {
      std::vector<double> out;
      out.reserve(x.size());
      for (const float number : x) {
        const auto value = static_cast<double>(round_to_bfloat16(number));
        out.push_back(absolute ? std::abs(value) : value);
      }
      return out;
    };
    const std::vector<double> left = rounded(a), right = rounded(b);
    std::vector<double> c(static_cast<std::size_t>(m * n));
    Arena arena;
    CpuContext device{arena};
    gemm(device, m, n, k, 1.0, {left.data(), a_stride, a_transposed}, {right.data(), b_stride, b_transposed}, 0.0,
         c.data(), n);
    return c;
  }
};

}  // namespace

TEST_CASE("bfloat16 products: rounding beforehand gives what the products round to") {
  if (!has_fast_bfloat16()) {
    MESSAGE("skipped: the instruction set has no bfloat16 products");
    return;
  }
  Numbers x = numbers(37, 5);
  x[3] = HUGE_VALF;
  x[4] = -1e-40F;          // a denormal number
  x[5] = 1 + 3 * 0x1p-8F;  // a number halfway between two bfloat16 numbers
  std::vector<Bfloat16> rounded(x.size() + 1, Bfloat16{7});
  convert_to_bfloat16(x.data(), std::ssize(x), rounded.data());
  for (std::size_t i = 0; i < x.size(); ++i) CHECK(from_bfloat16(rounded[i]) == (i == 4 ? 0 : round_to_bfloat16(x[i])));
  CHECK(rounded.back() == Bfloat16{7});
}

TEST_CASE("bfloat16 products: all transpositions, sizes on and beside the tiles' edges") {
  if (!has_fast_bfloat16()) {
    MESSAGE("skipped: the instruction set has no bfloat16 products");
    return;
  }
  for (const bool a : {false, true})
    for (const bool b : {false, true}) {
      for (const std::int64_t m : {1, 16, 33, 64})
        for (const std::int64_t n : {1, 31, 32, 70})
          for (const std::int64_t k : {1, 31, 32, 100}) Case{m, n, k, a, b}.check(1, 0);
      Case{40, 50, 60, a, b}.check(1, 1);
      Case{64, 64, 64, a, b}.check(1, 1);
      Case{64, 40, 64, a, b}.check(0.5F, 2);
    }
}

// The kernel of AMX takes k in pieces of 512 and the columns in groups of 512. The kernel of AVX-512 BF16 takes all of
// k at once and, where k is about 1,024, the columns in groups of 224 or 256. The larger sizes below therefore have
// several pieces and groups, and the last one is usually incomplete.
TEST_CASE("bfloat16 products: sizes past a piece of k and a group of columns, in all transpositions of training") {
  if (!has_fast_bfloat16()) {
    MESSAGE("skipped: the instruction set has no bfloat16 products");
    return;
  }
  // x W^T in the forward pass, and in the backward pass dy W (the gradient of x) and dy^T x (the gradient of W).
  for (const auto& [a, b] : {std::pair(false, true), {false, false}, {true, false}})
    for (const float beta : {0.0F, 1.0F}) {
      for (const auto& [m, n, k] : {std::tuple(33, 33, 1100),
                                    {33, 1030, 1100},
                                    {33, 1100, 1030},
                                    {1030, 33, 1100},
                                    {1030, 1100, 33},
                                    {32, 1024, 1024},
                                    {31, 1025, 1023}})
        Case{m, n, k, a, b}.check(1, beta);
      Case{33, 1030, 1100, a, b}.check(0.5F, beta);
    }
  Case{1030, 1100, 1030, true, false}.check(1, 1);
}

TEST_CASE("bfloat16 products: bias, max(0, z) and rounding in the product, as in passes of their own") {
  if (!has_fast_bfloat16()) {
    MESSAGE("skipped: the instruction set has no bfloat16 products");
    return;
  }
  for (const auto& [m, n, k] : {std::tuple<std::int64_t, std::int64_t, std::int64_t>(1, 1, 1),
                                {16, 31, 40},
                                {33, 50, 60},
                                {64, 64, 64},
                                {70, 96, 1100},
                                {33, 1030, 33}}) {
    CAPTURE(m);
    CAPTURE(n);
    CAPTURE(k);
    const std::int64_t stride = n + 3;
    const Numbers a = numbers(static_cast<std::size_t>(m * k), 1), b = numbers(static_cast<std::size_t>(k * n), 2);
    const Numbers bias = numbers(static_cast<std::size_t>(n), 3);
    const Numbers before = numbers(static_cast<std::size_t>(m * stride), 4);
    Arena arena;
    const Bfloat16LeftOperand left = bfloat16_left_operand(arena, m, k, GemmOperand<float>{a.data(), k});
    const Bfloat16Tiles right = bfloat16_tiles(arena, k, n, GemmOperand<float>{b.data(), n});
    Numbers product = before;
    gemm_bfloat16(1, left, right, 0, product.data(), stride);
    for (const bool biased : {false, true})
      for (const bool relu : {false, true}) {
        CAPTURE(biased);
        CAPTURE(relu);
        Numbers expected = product;
        for (std::int64_t i = 0; i < m; ++i)
          for (std::int64_t j = 0; j < n; ++j) {
            float& z = expected[static_cast<std::size_t>(i * stride + j)];
            if (biased) z += bias[static_cast<std::size_t>(j)];
            if (relu) z = std::max(z, 0.0F);
          }
        Bfloat16Finish finish{biased ? bias.data() : nullptr, relu};
        Numbers full = before;
        gemm_bfloat16(left, right, finish, full.data(), stride);
        CHECK(full == expected);

        std::vector<Bfloat16> rounded(before.size()), expected_rounded(before.size());
        convert_to_bfloat16(before.data(), std::ssize(before), rounded.data());
        convert_to_bfloat16(expected.data(), std::ssize(expected), expected_rounded.data());
        finish.rounded = rounded.data();
        gemm_bfloat16(left, right, finish, nullptr, stride);
        CHECK(rounded == expected_rounded);
      }
  }
}

TEST_CASE("bfloat16 products: a gradient that is laid out for two products, in parts") {
  if (!has_fast_bfloat16()) {
    MESSAGE("skipped: the instruction set has no bfloat16 products");
    return;
  }
  const std::int64_t n = 35;
  for (const bool relu : {false, true})
    for (const std::int64_t rows : {1, 32, 100, 256, 300})
      for (const std::int64_t columns : {1, 16, 40, 64, 150}) {
        CAPTURE(relu);
        CAPTURE(rows);
        CAPTURE(columns);
        const auto size = static_cast<std::size_t>(rows * columns);
        Numbers dy(size), sums(static_cast<std::size_t>(columns), 0.5F), expected_sums = sums;
        std::vector<Bfloat16> kept(size);
        Arena arena;
        Bfloat16Gradient gradient(arena, rows, columns, dy.data(), relu ? kept.data() : nullptr);
        // The numbers are there only when their rows are added.
        std::ranges::copy(numbers(size, 1), dy.begin());
        Numbers activations = numbers(size, 2);
        for (float& y : activations) y = std::max(y, 0.0F);
        convert_to_bfloat16(activations.data(), std::ssize(activations), kept.data());
        Numbers dz = dy;
        for (std::size_t i = 0; i < size; ++i)
          if (relu && activations[i] == 0) dz[i] = 0;
        for (std::int64_t r = 0; r < rows; ++r)
          for (std::int64_t c = 0; c < columns; ++c)
            expected_sums[static_cast<std::size_t>(c)] += dz[static_cast<std::size_t>(r * columns + c)];

        const Numbers weight = numbers(static_cast<std::size_t>(columns * n), 3);
        const Bfloat16Tiles of_weight = bfloat16_tiles(arena, columns, n, GemmOperand<float>{weight.data(), n});
        Numbers dx(static_cast<std::size_t>(rows * n)), expected_dx = dx;
        for (std::int64_t begin = 0; begin < rows; begin += 2 * Bfloat16Gradient::kPart) {
          const std::int64_t end = std::min(rows, begin + 2 * Bfloat16Gradient::kPart);
          gemm_bfloat16(1, gradient.add(arena, begin, end, sums.data()), of_weight, 0, dx.data() + begin * n, n);
        }
        const GemmOperand<float> plain{dz.data(), columns}, transposed{dz.data(), columns, true};
        gemm_bfloat16(1, bfloat16_left_operand(arena, rows, columns, plain), of_weight, 0, expected_dx.data(), n);
        CHECK(dx == expected_dx);
        CHECK(sums == expected_sums);

        const Numbers x = numbers(static_cast<std::size_t>(rows * n), 4);
        const Bfloat16Tiles of_x = bfloat16_tiles(arena, rows, n, GemmOperand<float>{x.data(), n});
        Numbers dw(static_cast<std::size_t>(columns * n)), expected_dw = dw;
        gemm_bfloat16(1, gradient.transposed(), of_x, 0, dw.data(), n);
        gemm_bfloat16(1, bfloat16_left_operand(arena, columns, rows, transposed), of_x, 0, expected_dw.data(), n);
        CHECK(dw == expected_dw);

        // Without sums, the products are the same.
        Bfloat16Gradient again(arena, rows, columns, dy.data(), relu ? kept.data() : nullptr);
        std::ranges::fill(dx, 1.0F);
        gemm_bfloat16(1, again.add(arena, 0, rows, nullptr), of_weight, 0, dx.data(), n);
        CHECK(dx == expected_dx);
      }
}

TEST_CASE("bfloat16 products: a row's bits do not depend on the other rows") {
  if (!has_fast_bfloat16()) {
    MESSAGE("skipped: the instruction set has no bfloat16 products");
    return;
  }
  for (const auto& [m, n, k] : {std::tuple<std::int64_t, std::int64_t, std::int64_t>(50, 45, 77),
                                {50, 45, 600},
                                {33, 1030, 1100},
                                {1030, 33, 33}})
    for (const auto& [alpha, beta] : {std::pair(1.0F, 0.0F), {0.5F, 0.0F}, {1.0F, 2.0F}, {0.5F, 1.0F}, {1.0F, 1.0F}}) {
      CAPTURE(m);
      CAPTURE(k);
      CAPTURE(alpha);
      CAPTURE(beta);
      const Numbers a = numbers(static_cast<std::size_t>(m * k), 1), b = numbers(static_cast<std::size_t>(k * n), 2);
      const Numbers before = numbers(static_cast<std::size_t>(m * n), 3);
      Arena arena;
      const Bfloat16Tiles right = bfloat16_tiles(arena, k, n, {b.data(), n});
      Numbers all = before;
      gemm_bfloat16(arena, m, alpha, {a.data(), k}, right, beta, all.data(), n);
      if (instruction_set() == InstructionSet::amx && alpha == 1 && beta == 1) {
        // Here a row's bits may depend on the number of rows, but they must not depend on the numbers in the other
        // rows.
        Numbers others = numbers(static_cast<std::size_t>(m * k), 4), some = before;
        for (std::int64_t i = 0; i < m; i += 3) std::copy_n(a.begin() + i * k, k, others.begin() + i * k);
        gemm_bfloat16(arena, m, alpha, {others.data(), k}, right, beta, some.data(), n);
        for (std::int64_t i = 0; i < m; i += 3)
          REQUIRE(std::equal(some.begin() + i * n, some.begin() + (i + 1) * n, all.begin() + i * n));
        continue;
      }
      for (std::int64_t i = 0; i < m; ++i) {
        Numbers one(before.begin() + i * n, before.begin() + (i + 1) * n);
        gemm_bfloat16(arena, 1, alpha, {a.data() + i * k, k}, right, beta, one.data(), n);
        REQUIRE(std::equal(one.begin(), one.end(), all.begin() + i * n));
      }
    }
}

TEST_CASE("bfloat16 products: numbers that are not finite stay so") {
  if (!has_fast_bfloat16()) return;
  for (const float bad : {std::nanf(""), HUGE_VALF}) {
    Numbers a = numbers(64, 1), c(64);
    a[5] = bad;
    const Numbers b = numbers(64, 2);
    Arena arena;
    gemm_bfloat16(arena, 8, 1, {a.data(), 8}, bfloat16_tiles(arena, 8, 8, {b.data(), 8}), 0, c.data(), 8);
    CHECK(!std::isfinite(c[3]));
    CHECK(std::isfinite(c[8]));
  }
}
