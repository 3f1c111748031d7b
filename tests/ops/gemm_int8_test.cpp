#include "heed/ops/gemm/gemm_int8.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <string>
#include <vector>

#include "heed/base/error.h"
#include "heed/tensor/aligned_vector.h"
#include "training.h"

using namespace heed;

namespace {

std::vector<float> multiply(Arena& arena, Tensor<float> x, std::int64_t rows, Tensor<float> w, const float* bias) {
  const std::int64_t n = w.rows(), k = w.columns();
  AlignedVector<std::byte> weight(static_cast<std::size_t>(int8_weight_bytes(n, k)), std::byte{0x55});
  for (std::int64_t j = 0; j < n; j += kInt8Columns)  // the weight is packed in pieces, as several threads would do it
    quantize_weight(n, k, j, std::min(n, j + kInt8Columns), w.row(j), k, weight.data());
  std::vector<float> y(static_cast<std::size_t>(rows * (n + 1)), 7);
  const ArenaScope scope(arena);
  const Int8Activations left = quantize_activations(arena, rows, k, x.data(), x.columns());
  for (std::int64_t j = 0; j < n; j += kInt8Columns)
    gemm_int8(left, n, j, std::min(n, j + kInt8Columns), {weight.data()}, bias, y.data() + j, n + 1);
  return y;
}

/// Returns x . w + bias with x and w as 8-bit integers, by the formula in gemm_int8.h. gemm_int8() must give the same
/// bits.
float expected(const float* x, const float* w, std::int64_t k, float bias) {
  float most_x = 0, most_w = 0;
  for (std::int64_t i = 0; i < k; ++i)
    most_x = std::max(most_x, std::abs(x[i])), most_w = std::max(most_w, std::abs(w[i]));
  const float least = 127.0F / std::numeric_limits<float>::max();  // 127 divided by less would be infinite
  const float to_x = most_x > least ? 127.0F / most_x : 0, to_w = most_w > least ? 127.0F / most_w : 0;
  std::int64_t sum = 0;
  for (std::int64_t i = 0; i < k; ++i) sum += std::lrintf(x[i] * to_x) * std::lrintf(w[i] * to_w);
  return std::fma(static_cast<float>(sum), most_x / 127.0F * (most_w / 127.0F), bias);
}

}  // namespace

TEST_CASE("gemm_int8: the bits of the formula on every instruction set, with any number of rows") {
  for (const std::int64_t n : {1, 15, 32, 33, 70})
    for (const std::int64_t k : {1, 5, 64, 130}) {
      CAPTURE(n);
      CAPTURE(k);
      Training<float> t;
      const std::int64_t most = 41;
      const Tensor<float> x = t.normal({most, k}).value, w = t.normal({n, k}).value, bias = t.normal({n}).value;
      std::fill(x.row(3), x.row(4), 0.0F);
      for (std::int64_t i = 0; i < k; ++i) x.row(5)[i] *= 1e20F;
      for (std::int64_t i = 0; i < k; ++i) x.row(11)[i] *= 1e-38F;
      // The largest sums of two neighbours, which 16 bits do not hold: all integers are 127, all are -127, or they
      // change their sign after every one, every two and every three.
      for (std::int64_t i = 0; i < k; ++i) {
        x.row(6)[i] = 1, x.row(7)[i] = -1;
        for (std::int64_t run = 1; run <= 3; ++run) x.row(7 + run)[i] = i / run % 2 == 0 ? 0.5F : -0.5F;
        w.row(0)[i] = 1;
        if (n > 1) w.row(1)[i] = -1;
        if (n > 2) w.row(2)[i] = i % 2 == 0 ? 1.0F : -1.0F;
      }
      std::vector<float> all;
      for (std::int64_t r = 0; r < most; ++r) {
        for (std::int64_t j = 0; j < n; ++j) all.push_back(expected(x.row(r), w.row(j), k, bias[j]));
        all.push_back(7);  // the element after each row of Y keeps its old value 7
      }
      for (const std::int64_t rows : {1, 2, 3, 7, 8, 16, 17, 31, 32, 33, 41}) {
        const std::vector<float> some = multiply(t.arena, x, rows, w, bias.data());
        CHECK(std::memcmp(some.data(), all.data(), some.size() * sizeof(float)) == 0);
      }
      CHECK(multiply(t.arena, x, 2, w, nullptr)[0] == expected(x.row(0), w.row(0), k, 0));
    }
}

TEST_CASE("gemm_int8: the bits of the formula where sums do not fit 32 bits, up to the widest layer of a model") {
  // A sum of k products of bytes, 255 x 127 k, exceeds 2^31 for k from 66,311 on. A sum of signed products, 127 x 127
  // k, exceeds 2^31 for k from 133,153 on. The largest k of a model is 1,048,576, the limit of --dim-ffn.
  for (const std::int64_t k : {65'536, 65'537, 66'311, 131'072, 133'153, 200'000, 1'048'576}) {
    CAPTURE(k);
    Training<float> t;
    const std::int64_t most = 33, n = 33;
    const Tensor<float> x = t.arena.tensor<float>({most, k}), w = t.arena.tensor<float>({n, k});
    for (std::int64_t r = 0; r < most; ++r)
      for (std::int64_t i = 0; i < k; ++i) x.row(r)[i] = r == 1 ? -1 : r == 2 ? static_cast<float>(i % 3 - 1) : 1;
    for (std::int64_t j = 0; j < n; ++j)
      for (std::int64_t i = 0; i < k; ++i) w.row(j)[i] = j == 1 ? -2 : j == 2 ? static_cast<float>(i % 7 - 3) : 2;
    const Tensor<float> bias = t.normal({n}).value;
    for (const std::int64_t rows :
         k == 200'000 ? std::vector<std::int64_t>{1, 3, 5, 33} : std::vector<std::int64_t>{5}) {
      CAPTURE(rows);
      const std::vector<float> y = multiply(t.arena, x, rows, w, bias.data());
      for (std::int64_t r = 0; r < rows; ++r)
        for (const std::int64_t j : {0, 1, 2, 32}) {
          CAPTURE(r);
          CAPTURE(j);
          CHECK(y[static_cast<std::size_t>(r * (n + 1) + j)] == expected(x.row(r), w.row(j), k, bias[j]));
        }
    }
  }
}

TEST_CASE("gemm_int8: the bias where k is 0, nothing without rows or columns") {
  Training<float> t;
  const Tensor<float> x = t.normal({20, 4}).value, w = t.normal({33, 4}).value, bias = t.normal({33}).value;
  for (const std::int64_t rows : {1, 20}) {
    const Tensor<float> no_depth(w.data(), {33, 0});
    const std::vector<float> y = multiply(t.arena, Tensor<float>(x.data(), {20, 0}), rows, no_depth, bias.data());
    for (std::int64_t r = 0; r < rows; ++r)
      for (std::int64_t j = 0; j < 33; ++j) CHECK(y[static_cast<std::size_t>(r * 34 + j)] == bias[j]);
    CHECK(multiply(t.arena, Tensor<float>(x.data(), {20, 0}), rows, no_depth, nullptr)[0] == 0);
    const std::vector<float> no_columns = multiply(t.arena, x, rows, Tensor<float>(w.data(), {0, 4}), nullptr);
    CHECK(std::count(no_columns.begin(), no_columns.end(), 7.0F) == rows);  // the element after each row is still 7
  }
  CHECK(multiply(t.arena, x, 0, w, bias.data()).empty());
}

TEST_CASE("gemm_int8: a weight that is too wide for its sums is refused") {
  const std::string message = "internal: gemm_int8: a weight of 8388609 columns (at most 8388608)";
  CHECK_THROWS_WITH_AS(quantize_weight(1, kInt8MostDepth + 1, 0, 1, nullptr, 0, nullptr), message.c_str(), Error);
}

TEST_CASE("gemm_int8: near the exact product, and infinite where a row is") {
  Training<float> t;
  const std::int64_t n = 64, k = 512;
  const Tensor<float> x = t.normal({4, k}).value, w = t.normal({n, k}).value;
  x.row(2)[7] = INFINITY;
  x.row(3)[8] = NAN;
  const std::vector<float> y = multiply(t.arena, x, 4, w, nullptr);
  double error = 0, size = 0;
  for (std::int64_t j = 0; j < n; ++j) {
    double sum = 0;
    for (std::int64_t i = 0; i < k; ++i) sum += static_cast<double>(x.row(0)[i]) * static_cast<double>(w.row(j)[i]);
    error += std::pow(static_cast<double>(y[static_cast<std::size_t>(j)]) - sum, 2);
    size += sum * sum;
    CHECK_FALSE(std::isfinite(y[static_cast<std::size_t>(2 * (n + 1) + j)]));
    CHECK_FALSE(std::isfinite(y[static_cast<std::size_t>(3 * (n + 1) + j)]));
  }
  CHECK(std::sqrt(error / size) < 0.02);
}
