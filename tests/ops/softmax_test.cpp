#include "heed/ops/softmax.h"

#include <limits>

#include "op_test.h"
#include "reference.h"
#include "training.h"

using namespace heed;

TEST_CASE("softmax and log_softmax: gradients, odd sizes") {
  for (const std::int64_t d : {1, 7, 70}) {
    require_gradients({{3, d}},
                      [](Graph<double>& graph, std::vector<Variable<double>>& in) { return softmax(graph, in[0]); });
    require_gradients(
        {{2, 2, d}}, [](Graph<double>& graph, std::vector<Variable<double>>& in) { return log_softmax(graph, in[0]); });
  }
}

TEST_CASE("softmax and log_softmax: as PyTorch, on every instruction set") {
  for_each_torch_case("softmax", [](auto& test, const auto& data) {
    const auto x = test.input("x");
    test.check(data["name"] == "softmax" ? softmax(test.graph(), x) : log_softmax(test.graph(), x));
  });
}

TEST_CASE("softmax: large numbers, minus infinity, no rows") {
  Training<float> t;
  const float infinity = std::numeric_limits<float>::infinity();
  const auto x = t.normal({3, 3});
  const float numbers[] = {1000, 1000, -1000, -infinity, 0, -infinity, -infinity, -infinity, -infinity};
  std::copy_n(numbers, 9, x.value.data());
  const auto y = softmax(t.graph, x);
  const float expected[] = {0.5, 0.5, 0, 0, 1, 0, 0, 0, 0};
  for (std::int64_t i = 0; i < 9; ++i) CHECK(y.value[i] == doctest::Approx(expected[i]));
  CHECK(log_softmax(t.graph, x).value[2] == doctest::Approx(-2000.693));
  CHECK(softmax(t.graph, t.normal({0, 4})).shape() == Shape{0, 4});
  CHECK(log_softmax(t.graph, t.normal({0, 4})).shape() == Shape{0, 4});
}
