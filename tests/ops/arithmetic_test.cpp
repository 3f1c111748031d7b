#include "heed/ops/arithmetic.h"

#include "heed/base/error.h"
#include "op_test.h"
#include "training.h"

using namespace heed;

TEST_CASE("add, multiply, scale, sum: gradients, also of a variable with itself") {
  using Inputs = std::vector<Variable<double>>;
  require_gradients({{5, 7}, {5, 7}}, [](Graph<double>& graph, Inputs& in) { return add(graph, in[0], in[1]); });
  require_gradients({{5, 7}, {5, 7}}, [](Graph<double>& graph, Inputs& in) { return multiply(graph, in[0], in[1]); });
  require_gradients({{3, 3}}, [](Graph<double>& graph, Inputs& in) { return multiply(graph, in[0], in[0]); });
  require_gradients({{3, 3}}, [](Graph<double>& graph, Inputs& in) { return multiply(graph, in[0], -2.5); });
  require_gradients({{3, 45}}, [](Graph<double>& graph, Inputs& in) { return sum(graph, in[0]); });
  require_gradients({{3, 15}, {1}}, [](Graph<double>& graph, Inputs& in) { return scale(graph, in[0], in[1]); });
  require_gradients({{1}}, [](Graph<double>& graph, Inputs& in) { return scale(graph, in[0], in[0]); });
}

TEST_CASE("weighted_sum: gradients, also of a tensor that occurs twice") {
  using Inputs = std::vector<Variable<double>>;
  require_gradients({{3}, {5, 7}, {5, 7}}, [](Graph<double>& graph, Inputs& in) {
    const Tensor<Variable<double>> x = graph.host_arena().tensor<Variable<double>>({3});
    x[0] = in[1], x[1] = in[2], x[2] = in[1];
    return weighted_sum<double>(graph, in[0], x.span());
  });
}

TEST_CASE("weighted_sum: what a loop gives; wrong shapes are named") {
  Training<float> t;
  const auto weights = t.normal({2});
  const Variable<float> x[] = {t.normal({3, 15}), t.normal({3, 15})};
  const auto y = weighted_sum<float>(t.graph, weights, x);
  for (std::int64_t i = 0; i < y.value.size(); ++i)
    CHECK(y.value[i] ==
          doctest::Approx(weights.value[0] * x[0].value[i] + weights.value[1] * x[1].value[i]).epsilon(1e-5).scale(1));
  CHECK_THROWS_WITH_AS(weighted_sum<float>(t.graph, t.normal({3}), x),
                       "internal: weighted_sum: weights has shape [3], expected [2]", Error);
  const Variable<float> unequal[] = {x[0], t.normal({3, 14})};
  CHECK_THROWS_WITH_AS(weighted_sum<float>(t.graph, weights, unequal),
                       "internal: weighted_sum: x has shape [3, 14], expected [3, 15]", Error);
}

TEST_CASE("scaled and multiplied numbers that are added to others have the same bits at any place of an array") {
  Arena arena;
  CpuContext device{arena};
  const Shape shape{47};
  const auto filled = [&](float value) {
    const Tensor<float> out = arena.tensor<float>(shape);
    std::fill_n(out.data(), out.size(), value);
    return out;
  };
  for (float value = 0.1F; value < 3; value += 0.17F) {  // a fused operation rounds only some of these in another way
    const Tensor<float> x = filled(value), scaled = filled(0.7F), multiplied = filled(0.7F);
    scale_into<float>(device, x, 0.3F, 1, scaled);
    multiply_into<float>(device, x, filled(0.3F), 1, multiplied);
    for (std::int64_t i = 0; i < x.size(); ++i) {
      CAPTURE(value);
      CAPTURE(i);
      CHECK(scaled[i] == scaled[0]);
      CHECK(multiplied[i] == multiplied[0]);
    }
  }
}

TEST_CASE("add, multiply, scale, sum: what a loop gives, on every instruction set; wrong shapes are named") {
  Training<float> t;
  const auto a = t.normal({3, 15}), b = t.normal({3, 15});
  const auto plus = add(t.graph, a, b), times = multiply(t.graph, a, b), twice = multiply(t.graph, a, 2);
  const auto factor = t.normal({1});
  const auto scaled = scale(t.graph, a, factor);
  double total = 0;
  for (std::int64_t i = 0; i < a.value.size(); ++i) {
    CHECK(plus.value[i] == a.value[i] + b.value[i]);
    CHECK(times.value[i] == a.value[i] * b.value[i]);
    CHECK(twice.value[i] == 2 * a.value[i]);
    CHECK(scaled.value[i] == a.value[i] * factor.value[0]);
    total += a.value[i];
  }
  CHECK(sum(t.graph, a).value[0] == doctest::Approx(total));
  CHECK(sum(t.graph, t.normal({0, 3})).value[0] == 0);
  CHECK_THROWS_WITH_AS(add(t.graph, a, t.normal({15})), "internal: add: b has shape [15], expected [3, 15]", Error);
  CHECK_THROWS_AS(multiply(t.graph, a, t.normal({15})), Error);
  CHECK_THROWS_WITH_AS(scale(t.graph, a, t.normal({2})), "internal: scale: factor has shape [2], expected [1]", Error);
}
