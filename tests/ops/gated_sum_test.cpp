#include "heed/ops/gated_sum.h"

#include "heed/base/error.h"
#include "op_test.h"
#include "training.h"

using namespace heed;

TEST_CASE("gated_sum: gradients, also where one variable is gate and input") {
  using Inputs = std::vector<Variable<double>>;
  require_gradients({{5, 7}, {5, 7}, {5, 7}, {5, 7}},
                    [](Graph<double>& graph, Inputs& in) { return gated_sum(graph, in[0], in[1], in[2], in[3]); });
  require_gradients({{3, 5}, {3, 5}},
                    [](Graph<double>& graph, Inputs& in) { return gated_sum(graph, in[0], in[0], in[1], in[0]); });
}

TEST_CASE("gated_sum: what a loop gives, on every instruction set; wrong shapes are named") {
  Training<float> t;
  const auto a = t.normal({3, 15}), x = t.normal({3, 15}), b = t.normal({3, 15}), z = t.normal({3, 15});
  const auto y = gated_sum(t.graph, a, x, b, z);
  const auto sigmoid = [](double v) { return 1 / (1 + std::exp(-v)); };
  for (std::int64_t i = 0; i < y.value.size(); ++i)
    CHECK(y.value[i] ==
          doctest::Approx(sigmoid(a.value[i]) * x.value[i] + sigmoid(b.value[i]) * z.value[i]).epsilon(1e-5).scale(1));
  CHECK_THROWS_WITH_AS(gated_sum(t.graph, a, x, t.normal({3, 14}), z),
                       "internal: gated_sum: b has shape [3, 14], expected [3, 15]", Error);
}
