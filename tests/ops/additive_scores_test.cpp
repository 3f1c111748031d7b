#include "heed/ops/additive_scores.h"

#include <cmath>

#include "heed/base/error.h"
#include "heed/ops/arithmetic.h"
#include "op_test.h"
#include "training.h"

using namespace heed;

TEST_CASE("additive_scores: gradients, also where queries or keys are too large for their exponentials") {
  for (const double of_query : {1.0, 25.0})
    for (const double of_key : {1.0, 25.0})
      require_gradients(
          {{2, 3, 5}, {2, 6, 5}, {5}},
          [&](Graph<double>& graph, std::vector<Variable<double>>& in) {
            return additive_scores(graph, multiply(graph, in[0], of_query), multiply(graph, in[1], of_key), in[2]);
          },
          1e-6);
}

TEST_CASE_TEMPLATE("additive_scores: the definition, for all widths and sizes of queries and keys", T, float, double) {
  for (const int width : {1, 4, 7, 16, 33})
    for (const T factor : {T(1), T(6), T(30)}) {
      CAPTURE(width);
      CAPTURE(factor);
      Training<T> t;
      const auto q = t.normal({2, 3, width}), k = t.normal({2, 5, width}), v = t.normal({width});
      for (T& x : q.value.span()) x = std::abs(x) * factor;
      for (T& x : k.value.span()) x *= factor;
      const Tensor<T> y = additive_scores(t.graph, q, k, v).value;
      for (std::int64_t r = 0; r < 6; ++r)
        for (std::int64_t j = 0; j < 5; ++j) {
          double expected = 0;
          for (std::int64_t c = 0; c < width; ++c)
            expected +=
                double(v.value[c]) * std::tanh(double(q.value.row(r)[c]) + double(k.value.row(r / 3 * 5 + j)[c]));
          CHECK(std::abs(double(y.row(r)[j]) - expected) < (sizeof(T) == 4 ? 1e-5 : 1e-13));
        }
    }
}

TEST_CASE_TEMPLATE("additive_scores: where all tangents are 1, the score is the sum of the scorer", T, float, double) {
  // The exponentials of four columns would overflow when they are multiplied.
  Training<T> t;
  const auto q = t.normal({1, 2, 8}), k = t.normal({1, 3, 8}), v = t.normal({8});
  for (T& x : q.value.span()) x = 19;
  for (T& x : k.value.span()) x = 19;
  T sum = 0;
  for (const T x : v.value.span()) sum += x;
  for (const T y : additive_scores(t.graph, q, k, v).value.span()) CHECK(std::abs(y - sum) < T(1e-5));
}

TEST_CASE("additive_scores: no keys and no queries") {
  Training<float> t;
  const auto none = t.normal({2, 0, 4}), some = t.normal({2, 3, 4}), v = t.normal({4});
  CHECK(additive_scores(t.graph, none, some, v).shape() == Shape{2, 0, 3});
  CHECK(additive_scores(t.graph, some, none, v).shape() == Shape{2, 3, 0});
}

TEST_CASE("additive_scores: wrong shapes are named") {
  Training<float> t;
  const auto q = t.normal({2, 3, 5}), v = t.normal({5});
  CHECK_THROWS_WITH_AS(additive_scores(t.graph, q, t.normal({2, 4, 6}), v),
                       "internal: additive_scores: key has shape [2, 4, 6], expected [2, 4, 5]", Error);
  CHECK_THROWS_WITH_AS(additive_scores(t.graph, q, t.normal({5}), v),
                       "internal: additive_scores: key has shape [5], expected [2, 3, 5]", Error);
  CHECK_THROWS_WITH_AS(additive_scores(t.graph, q, q, t.normal({4})),
                       "internal: additive_scores: scorer has shape [4], expected [5]", Error);
  CHECK_THROWS_WITH_AS(additive_scores(t.graph, v, q, v),
                       "internal: additive_scores: query has shape [5], expected [B, T, D]", Error);
}
