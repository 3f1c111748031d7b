#include "heed/ops/gemm/gemm_rows.h"

#include <doctest/doctest.h>

#include <array>
#include <cstring>
#include <limits>
#include <type_traits>
#include <vector>

#include "heed/ops/gemm/gemm.h"
#include "heed/ops/gemm/gemm_bfloat16.h"
#include "heed/tensor/aligned_vector.h"
#include "training.h"

using namespace heed;

TEST_CASE_TEMPLATE("gemm_rows: the product, and a row's bits whatever the number of rows", T, float, double) {
  for (const std::int64_t n : {1, 3, 16, 33, 64, 141})
    for (const std::int64_t k : {1, 7, 32, 100}) {
      CAPTURE(n);
      CAPTURE(k);
      Training<T> t;
      const std::int64_t most = 50;
      const Tensor<T> x = t.normal({most, k + 2}).value, w = t.normal({n, k + 1}).value, bias = t.normal({n}).value;
      const Tensor<T> y = t.arena.template tensor<T>({most, n}), expected = t.arena.template tensor<T>({most, n});
      gemm(t.device, most, n, k, T(1), {x.data(), k + 2}, {w.data(), k + 1, true}, T(0), expected.data(), n);
      AlignedVector<T> panels(static_cast<std::size_t>(Panels<T>::size(n, k)), T(9));
      pack_panels(n, k, w.data(), k + 1, panels.data());
      gemm_rows(most, n, k, x.data(), k + 2, Panels<T>{panels.data()}, nullptr, y.data(), n);
      CHECK(largest_difference(y, expected) < (sizeof(T) == 4 ? 1e-4 : 1e-12));
      std::vector<T> other(static_cast<std::size_t>(most * n));
      gemm_rows(most, n, k, x.data(), k + 2, w.data(), k + 1, other.data(), n);
      // An unpacked weight gives the same bits as a packed weight.
      CHECK(std::memcmp(other.data(), y.data(), other.size() * sizeof(T)) == 0);

      for (std::int64_t i = 0; i < most * n; ++i) expected[i] += bias[i % n];
      gemm_rows(most, n, k, x.data(), k + 2, Panels<T>{panels.data()}, bias.data(), y.data(), n);
      CHECK(largest_difference(y, expected) < (sizeof(T) == 4 ? 1e-4 : 1e-12));
      for (std::int64_t rows = 1; rows < most; rows += rows < 20 ? 1 : 5) {
        std::vector<T> part(static_cast<std::size_t>(rows * (n + 1)), T(7));
        gemm_rows(rows, n, k, x.row(1), k + 2, Panels<T>{panels.data()}, bias.data(), part.data(), n + 1);
        for (std::int64_t r = 0; r < rows; ++r) {
          CHECK(std::memcmp(&part[static_cast<std::size_t>(r * (n + 1))], y.row(1 + r),
                            static_cast<std::size_t>(n) * sizeof(T)) == 0);
          // The element after a row of Y keeps its old value 7.
          CHECK(part[static_cast<std::size_t>(r * (n + 1) + n)] == T(7));
        }
      }
    }
}

TEST_CASE_TEMPLATE("gemm_rows: the panels of a transposed matrix", T, float, double) {
  for (const std::int64_t n : {1, 16, 33, 64})
    for (const std::int64_t k : {0, 1, 7, 32}) {
      CAPTURE(n);
      CAPTURE(k);
      Training<T> t;
      const Tensor<T> matrix = t.normal({k, n + 3}).value, weight = t.arena.template tensor<T>({n, k});
      for (std::int64_t i = 0; i < k; ++i)
        for (std::int64_t j = 0; j < n; ++j) weight.row(j)[i] = matrix.row(i)[j];
      std::vector<T> panels(static_cast<std::size_t>(Panels<T>::size(n, k)) + 1, T(9)), expected = panels;
      pack_transposed_panels(n, k, matrix.data(), n + 3, panels.data());
      pack_panels(n, k, weight.data(), k, expected.data());
      CHECK(panels == expected);
    }
}

TEST_CASE_TEMPLATE("gemm_rows: the bias where k is 0, nothing without rows or columns", T, float, double) {
  Training<T> t;
  const Tensor<T> x = t.normal({20, 4}).value, w = t.normal({33, 4}).value, bias = t.normal({33}).value;
  for (const auto& [rows, n, k] :
       std::vector<std::array<std::int64_t, 3>>{{20, 33, 0}, {1, 5, 0}, {0, 33, 4}, {20, 0, 4}}) {
    CAPTURE(rows);
    CAPTURE(n);
    AlignedVector<T> panels(static_cast<std::size_t>(Panels<T>::size(n, k)), T(9));
    pack_panels(n, k, w.data(), 4, panels.data());
    for (const T* const b : {static_cast<const T*>(bias.data()), static_cast<const T*>(nullptr)}) {
      std::vector<T> y(static_cast<std::size_t>(rows * n + 1), T(7));
      gemm_rows(rows, n, k, x.data(), 4, Panels<T>{panels.data()}, b, y.data(), n);
      for (std::int64_t i = 0; i < rows * n; ++i) CHECK(y[static_cast<std::size_t>(i)] == (b ? b[i % n] : T(0)));
      CHECK(y.back() == T(7));
    }
    std::vector<T> y(static_cast<std::size_t>(rows * n + 1), T(7));
    gemm_rows(rows, n, k, x.data(), 4, w.data(), 4, y.data(), n);
    for (std::int64_t i = 0; i < rows * n; ++i) CHECK(y[static_cast<std::size_t>(i)] == T(0));
    CHECK(y.back() == T(7));
  }
}

namespace {

/// Checks that multiply(beta, c, c_stride) computes C = beta C, which is the product where k is 0, and does nothing
/// where m or n is 0. C begins as NaN where beta is 0, since C must not be read then. The 7 after each row of C must
/// remain.
template <class T, class Multiply>
void check_empty_product(std::int64_t m, std::int64_t n, std::int64_t k, Multiply multiply) {
  CAPTURE(m);
  CAPTURE(n);
  CAPTURE(k);
  for (const T beta : {T(0), T(1), T(3)}) {
    CAPTURE(beta);
    std::vector<T> c(static_cast<std::size_t>(m * (n + 1) + 1), beta == 0 ? std::numeric_limits<T>::quiet_NaN() : T(2));
    for (std::int64_t i = 0; i < m; ++i) c[static_cast<std::size_t>(i * (n + 1) + n)] = T(7);
    c.back() = T(7);
    multiply(beta, c.data(), n + 1);
    for (std::int64_t i = 0; i < m; ++i)
      for (std::int64_t j = 0; j <= n; ++j)
        CHECK(c[static_cast<std::size_t>(i * (n + 1) + j)] == (j == n ? T(7) : 2 * beta));
    CHECK(c.back() == T(7));
  }
}

}  // namespace

TEST_CASE_TEMPLATE("gemm: beta C where k is 0, nothing without rows or columns, in every precision", T, float, double) {
  using Sizes = std::array<std::int64_t, 3>;
  for (const Precision precision : {Precision::float32, Precision::bfloat16})
    for (const auto& [m, n, k] :
         {Sizes{40, 70, 0}, Sizes{32, 32, 0}, Sizes{1, 1, 0}, Sizes{0, 70, 5}, Sizes{40, 0, 5}}) {
      CAPTURE(static_cast<int>(precision));
      Training<T> t;
      t.device.precision = precision;
      const Tensor<T> x = t.normal({70, 70}).value;
      for (const bool transposed : {false, true}) {
        const GemmOperand<T> a{x.data(), transposed ? m : k, transposed}, b{x.data(), transposed ? k : n, transposed};
        check_empty_product<T>(m, n, k, [&](T beta, T* c, std::int64_t stride) {
          gemm(t.device, m, n, k, T(0.5), a, b, beta, c, stride);
        });
        check_empty_product<T>(m, n, k, [&](T beta, T* c, std::int64_t stride) {
          gemm(t.device, m, T(1), a, prepare_right_operand(t.device, k, n, b), beta, c, stride);
        });
      }
      if constexpr (std::is_same_v<T, float>)
        if (takes_bfloat16(t.device)) {
          const std::vector<Bfloat16> rounded(70 * 70, Bfloat16{0x3F80});
          const GemmOperand<Bfloat16> a{rounded.data(), k}, b{rounded.data(), n};
          check_empty_product<T>(m, n, k, [&](T beta, T* c, std::int64_t stride) {
            gemm(t.device, m, T(1), a, prepare_right_operand(t.device, k, n, b), beta, c, stride);
          });
          check_empty_product<T>(m, n, k, [&](T beta, T* c, std::int64_t stride) {
            gemm_bfloat16(1, bfloat16_left_operand(t.arena, m, k, a), bfloat16_tiles(t.arena, k, n, b), beta, c,
                          stride);
          });
          check_empty_product<T>(m, n, k, [&](T beta, T* c, std::int64_t stride) {
            gemm_bfloat16(t.arena, m, T(0.5), {x.data(), k}, bfloat16_tiles(t.arena, k, n, b), beta, c, stride);
          });
        }
    }
}

TEST_CASE_TEMPLATE("pack_panels: a row of W in each column of a panel, zeros for the rows that are missing", T, float,
                   double) {
  constexpr std::int64_t kPanel = kPanelRows<T>;
  const std::int64_t n = kPanel + 3, k = 5, stride = 6;
  Training<T> t;
  const Tensor<T> w = t.normal({n, stride}).value;
  std::vector<T> panels(static_cast<std::size_t>(Panels<T>::size(n, k)), T(9));
  REQUIRE(static_cast<std::int64_t>(panels.size()) == 2 * kPanel * k);
  pack_panels(n, k, w.data(), stride, panels.data());
  for (std::int64_t i = 0; i < 2 * kPanel * k; ++i) {
    const std::int64_t row = i / (kPanel * k) * kPanel + i % kPanel, column = i % (kPanel * k) / kPanel;
    CHECK(panels[static_cast<std::size_t>(i)] == (row < n ? w[row * stride + column] : T(0)));
  }
}
