#include "heed/ops/gemm/gemm_rows.h"

#include <cstring>

#include "heed/ops/gemm/gemm.h"
#include "targets.h"
#include "training.h"

using namespace heed;

TEST_CASE_TEMPLATE("gemm_rows: the product, and a row's bits whatever the number of rows", T, float, double) {
  for_each_simd_target([] {
    for (const std::int64_t n : {1, 3, 4, 33})
      for (const std::int64_t k : {1, 7, 32, 100}) {
        CAPTURE(n);
        CAPTURE(k);
        Training<T> t;
        const std::int64_t most = 50;
        const Tensor<T> x = t.normal({most, k + 2}).value, w = t.normal({n, k + 1}).value;
        const Tensor<T> y = t.arena.template tensor<T>({most, n}), expected = t.arena.template tensor<T>({most, n});
        gemm(t.device, most, n, k, T(1), {x.data(), k + 2}, {w.data(), k + 1, true}, T(0), expected.data(), n);
        gemm_rows(most, n, k, x.data(), k + 2, w.data(), k + 1, y.data(), n);
        CHECK(largest_difference(y, expected) < (sizeof(T) == 4 ? 1e-4 : 1e-12));
        std::vector<T> part(static_cast<std::size_t>(most * n));
        for (std::int64_t rows = 1; rows < most; rows += rows < 8 ? 1 : 5) {
          gemm_rows(rows, n, k, x.row(1), k + 2, w.data(), k + 1, part.data(), n);
          CHECK(std::memcmp(part.data(), y.row(1), static_cast<std::size_t>(rows * n) * sizeof(T)) == 0);
        }
      }
  });
}
