#include "heed/ops/top_k.h"

#include <doctest/doctest.h>

#include <cmath>
#include <limits>

#include "training.h"

using namespace heed;

namespace {

template <class T>
struct Best {
  std::vector<T> values;
  std::vector<std::int32_t> indices;
};

template <class T>
Best<T> run(Training<T>& t, Tensor<T> scores, std::int64_t k, bool log_softmax = false) {
  Best<T> best{std::vector<T>(static_cast<std::size_t>(scores.rows() * k)),
               std::vector<std::int32_t>(static_cast<std::size_t>(scores.rows() * k))};
  if (log_softmax)
    log_softmax_top_k(t.device, scores, k, best.values.data(), best.indices.data());
  else
    top_k(t.device, scores, k, best.values.data(), best.indices.data());
  return best;
}

template <class T>
Tensor<T> row(Training<T>& t, const std::vector<T>& numbers) {
  const Tensor<T> x = t.arena.template tensor<T>({1, static_cast<std::int64_t>(numbers.size())});
  std::copy(numbers.begin(), numbers.end(), x.data());
  return x;
}

}  // namespace

TEST_CASE_TEMPLATE("top_k: as sorting, every instruction set, any k and width", T, float, double) {
  Training<T> t;
  for (const int n : {1, 3, 17, 100, 1001})
    for (const int k : {1, 2, 5, 12, 64, 300, 1001}) {
      if (k > n) continue;
      CAPTURE(n);
      CAPTURE(k);
      const Tensor<T> x = t.normal({3, n}).value;
      for (T& v : x.span()) v = std::round(v * 20);  // many numbers are equal
      const Best<T> best = run(t, x, k);
      for (std::int64_t r = 0; r < 3; ++r) {
        std::vector<std::int32_t> order(static_cast<std::size_t>(n));
        for (std::size_t i = 0; i < order.size(); ++i) order[i] = static_cast<std::int32_t>(i);
        std::stable_sort(order.begin(), order.end(), [&](int a, int b) { return x.row(r)[a] > x.row(r)[b]; });
        bool same = true;
        for (std::int64_t i = 0; i < k; ++i) {
          const auto at = static_cast<std::size_t>(r * k + i);
          same &=
              best.indices[at] == order[static_cast<std::size_t>(i)] && best.values[at] == x.row(r)[best.indices[at]];
        }
        CHECK(same);
      }
    }
}

TEST_CASE_TEMPLATE("top_k: forbidden words (minus infinity) and NaN come last, the lowest index first", T, float,
                   double) {
  Training<T> t;
  const T none = -std::numeric_limits<T>::infinity(), nan = std::numeric_limits<T>::quiet_NaN();
  std::vector<T> numbers(40, none);
  numbers[3] = nan;
  numbers[35] = 2;
  numbers[36] = nan;
  numbers[37] = 7;
  const Best<T> best = run(t, row(t, numbers), 4);
  CHECK(best.indices == std::vector<std::int32_t>{37, 35, 0, 1});
  CHECK(best.values == std::vector<T>{7, 2, none, none});
  numbers.resize(1000, 1);
  numbers[200] = nan;
  numbers[400] = numbers[402] = 9;
  CHECK(run(t, row(t, numbers), 5).indices == std::vector<std::int32_t>{400, 402, 37, 35, 40});
  numbers.assign(1000, nan);
  numbers[500] = 1;
  CHECK(run(t, row(t, numbers), 2).indices == std::vector<std::int32_t>{500, 0});
  CHECK(run(t, row(t, std::vector<T>{nan, none, nan}), 3).indices == std::vector<std::int32_t>{1, 0, 2});
}

TEST_CASE_TEMPLATE("log_softmax_top_k: the log-probabilities of the best", T, float, double) {
  Training<T> t;
  for (const int n : {2, 37, 1000}) {
    const Tensor<T> x = t.normal({2, n}).value;
    for (T& v : x.span()) v = 30 * v + 200;  // exp(v) would overflow if the largest v were not subtracted
    const Best<T> best = run(t, x, 2, true), plain = run(t, x, 2);
    CHECK(best.indices == plain.indices);
    for (std::size_t i = 0; i < 4; ++i) {
      double sum = 0;
      const T* values = x.row(static_cast<std::int64_t>(i / 2));
      for (int v = 0; v < n; ++v) sum += std::exp(double(values[v]) - double(plain.values[i]));
      CHECK(double(best.values[i]) == doctest::Approx(-std::log(sum)).epsilon(sizeof(T) == 4 ? 1e-4 : 1e-12));
    }
  }
}

TEST_CASE_TEMPLATE("LogSoftmaxTopK: blocks of columns give what the whole rows give", T, float, double) {
  Training<T> t;
  const std::int64_t rows = 5, columns = 203;
  const Tensor<T> logits = t.normal({rows, columns}).value;
  for (std::int64_t j = 0; j < columns; ++j) logits.row(1)[j] = std::round(logits.row(1)[j]);  // many logits are equal
  for (std::int64_t j = 0; j < columns; ++j) logits.row(2)[j] = static_cast<T>(j) / 4;  // the largest logit is the last
  for (std::int64_t j = 0; j < columns; ++j) logits.row(3)[j] -= static_cast<T>(j);     // the largest logit comes early
  for (std::int64_t j = 0; j < 150; ++j) logits.row(4)[j] = -std::numeric_limits<T>::infinity();
  for (const std::int64_t k : {1, 7, 40}) {
    const Best<T> whole = run(t, logits, k, true);
    for (const std::int64_t width : {16, 64, 100, 203}) {
      CAPTURE(k);
      CAPTURE(width);
      Best<T> best{whole.values, std::vector<std::int32_t>(whole.indices.size(), -1)};
      LogSoftmaxTopK<T> blocks(t.arena, rows, k, best.values.data(), best.indices.data());
      for (std::int64_t first = 0; first < columns; first += width) {
        const std::int64_t count = std::min(width, columns - first);
        const Tensor<T> block = t.arena.template tensor<T>({rows, count});
        for (std::int64_t r = 0; r < rows; ++r) std::copy_n(logits.row(r) + first, count, block.row(r));
        blocks.add(block, first);
      }
      REQUIRE(blocks.finish().empty());
      CHECK(best.indices == whole.indices);
      for (std::size_t i = 0; i < whole.values.size(); ++i)
        CHECK(best.values[i] == doctest::Approx(whole.values[i]).epsilon(1e-5));
    }
  }
  Best<T> none{std::vector<T>(static_cast<std::size_t>(rows * 60)),
               std::vector<std::int32_t>(static_cast<std::size_t>(rows * 60))};
  LogSoftmaxTopK<T> few(t.arena, rows, 60, none.values.data(), none.indices.data());
  few.add(logits, 0);
  CHECK(few.finish() == std::vector<std::int64_t>{4});  // the last row has 53 numbers above minus infinity
}

TEST_CASE("LogSoftmaxTopK: a row without numbers does not change the rows beside it") {
  Training<float> t;
  const Tensor<float> logits = t.normal({3, 1300}).value;
  std::fill_n(logits.row(1), 1300, std::numeric_limits<float>::quiet_NaN());
  std::vector<float> together(9), alone(3);
  std::vector<std::int32_t> ids(9), ids_alone(3);
  LogSoftmaxTopK<float> all(t.arena, 3, 3, together.data(), ids.data());
  all.add(logits, 0);
  CHECK(all.finish() == std::vector<std::int64_t>{1});
  for (const std::int64_t r : {0, 2}) {
    LogSoftmaxTopK<float> one(t.arena, 1, 3, alone.data(), ids_alone.data());
    one.add(Tensor<float>(logits.row(r), {1, 1300}), 0);
    CHECK(one.finish().empty());
    CHECK(std::equal(alone.begin(), alone.end(), together.begin() + 3 * r));
    CHECK(std::equal(ids_alone.begin(), ids_alone.end(), ids.begin() + 3 * r));
  }
}
