#include "heed/ops/gemm/gemm_rows.h"

#include <doctest/doctest.h>

#include <cstring>

#include "heed/ops/gemm/gemm.h"
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
      CHECK(std::memcmp(other.data(), y.data(), other.size() * sizeof(T)) == 0);  // packed on the way

      for (std::int64_t i = 0; i < most * n; ++i) expected[i] += bias[i % n];
      gemm_rows(most, n, k, x.data(), k + 2, Panels<T>{panels.data()}, bias.data(), y.data(), n);
      CHECK(largest_difference(y, expected) < (sizeof(T) == 4 ? 1e-4 : 1e-12));
      for (std::int64_t rows = 1; rows < most; rows += rows < 20 ? 1 : 5) {
        std::vector<T> part(static_cast<std::size_t>(rows * (n + 1)), T(7));
        gemm_rows(rows, n, k, x.row(1), k + 2, Panels<T>{panels.data()}, bias.data(), part.data(), n + 1);
        for (std::int64_t r = 0; r < rows; ++r) {
          CHECK(std::memcmp(&part[static_cast<std::size_t>(r * (n + 1))], y.row(1 + r),
                            static_cast<std::size_t>(n) * sizeof(T)) == 0);
          CHECK(part[static_cast<std::size_t>(r * (n + 1) + n)] == T(7));  // nothing behind a row is written
        }
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
