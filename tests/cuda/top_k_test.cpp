#include "heed/ops/top_k.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "kernel_check.h"

namespace heed {
namespace {

/// Checks the k largest numbers of each row and, with `log_probabilities`, those of log_softmax_top_k(), too.
template <class T>
void check(TestTensor<T>& scores, std::int64_t k, bool log_probabilities = true) {
  CAPTURE(scores.shape.text());
  CAPTURE(k);
  const Shape shape{scores.shape[0], k};
  std::vector<std::int32_t> indices(static_cast<std::size_t>(shape.size()));
  std::vector<TestTensor<T>> before;
  for (std::uint64_t i = 0; i < (log_probabilities ? 4 : 2); ++i) before.push_back(normal<T>(shape, 10 + i));
  check_kernels<T>(before, [&](auto& device, std::span<const Tensor<T>> to) {
    top_k(device, scores.view(), k, to[0].data(), indices.data());
    // NaN does not equal NaN.
    for (T& value : to[0].span()) value = std::isnan(value) ? T(12345) : value;
    std::copy(indices.begin(), indices.end(), to[1].data());
    if (!log_probabilities) return;
    log_softmax_top_k(device, scores.view(), k, to[2].data(), indices.data());
    std::copy(indices.begin(), indices.end(), to[3].data());
  });
}

TEST_CASE_TEMPLATE("top k on a GPU: rows of any width, any k", T, float, double) {
  for (const auto& [columns, k] : std::vector<std::pair<std::int64_t, std::int64_t>>{
           {1, 1}, {31, 31}, {32, 5}, {33, 33}, {33, 1}, {100, 60}, {257, 3}, {1030, 40}, {5000, 2}, {5001, 11}}) {
    TestTensor<T> scores = normal<T>({2, columns}, 1);
    check(scores, k);
  }
}

TEST_CASE_TEMPLATE("columns that are taken away on a GPU", T, float, double) {
  for (const std::int64_t columns : {1, 31, 32, 33, 700}) {
    CAPTURE(columns);
    const std::int64_t stride = (columns + 31) / 32;
    std::vector<std::uint32_t> bits(static_cast<std::size_t>(2 * stride));
    for (std::size_t i = 0; i < bits.size(); ++i) bits[i] = 0x9E3779B9U * static_cast<std::uint32_t>(i + 1);
    const std::vector<std::int32_t> set_of_row{1, 0, 1};
    check_kernels<T>({normal<T>({3, columns}, 1)}, [&](auto& device, std::span<const Tensor<T>> to) {
      mask_columns(device, to[0], {bits.data(), stride}, set_of_row);
      for (T& value : to[0].span()) value = std::isinf(value) ? T(-1000) : value;
    });
  }
}

TEST_CASE_TEMPLATE("top k on a GPU: equal numbers, zeros of both signs", T, float, double) {
  constexpr std::int64_t kColumns = 70;
  TestTensor<T> scores = normal<T>({3, kColumns}, 1);
  for (T& x : scores.values) x = std::round(2 * x) / 2;  // both zeros, too
  std::fill_n(scores.view().row(1), kColumns, T(1));
  for (std::int64_t i = 0; i < kColumns; ++i) scores.view().row(2)[i] = i % 3 == 0 ? -T(0) : T(0);
  for (const std::int64_t k : {std::int64_t{1}, std::int64_t{7}, kColumns}) check(scores, k);
}

TEST_CASE_TEMPLATE("top k on a GPU: a few threads have the best numbers, more than a block can list", T, float,
                   double) {
  constexpr std::int64_t kColumns = 20000, kThreads = 512;
  TestTensor<T> scores = normal<T>({1, kColumns}, 1);
  // The first threads have nearly all of the best numbers, and number 0 of their numbers is the worst of these.
  constexpr std::int64_t kSize = 16 / sizeof(T);
  for (std::int64_t i = 0; i < kColumns; ++i)
    if (i / kSize % kThreads < 64) scores.values[static_cast<std::size_t>(i)] += static_cast<T>(10);
  check(scores, 30);
  std::ranges::sort(scores.values);
  check(scores, 33);
}

TEST_CASE_TEMPLATE("top k on a GPU: infinities and NaN", T, float, double) {
  constexpr std::int64_t kColumns = 70;
  constexpr T kInfinity = std::numeric_limits<T>::infinity(), kNan = std::numeric_limits<T>::quiet_NaN();
  TestTensor<T> scores = normal<T>({6, kColumns}, 1);
  const auto row = [&](std::int64_t r) { return scores.view().row(r); };
  for (const std::int64_t i : {3, 4, 40, 69}) row(0)[i] = -kInfinity;
  for (const std::int64_t i : {0, 35, 36, 67}) row(1)[i] = kNan;
  for (const std::int64_t i : {0, 33, 65, 68}) {
    row(2)[i] = -kInfinity;
    row(2)[69 - i] = kNan;
  }
  std::fill_n(row(3), kColumns, -kInfinity);
  std::fill_n(row(4), kColumns, kNan);
  std::fill_n(row(5), kColumns, kNan);
  row(5)[66] = kInfinity;
  row(5)[2] = -kInfinity;
  for (const std::int64_t k : {std::int64_t{1}, std::int64_t{5}, kColumns}) check(scores, k, false);
  TestTensor<T> first{{1, kColumns}, {row(0), row(0) + kColumns}};
  for (const std::int64_t k : {std::int64_t{1}, kColumns}) check(first, k);
}

}  // namespace
}  // namespace heed
