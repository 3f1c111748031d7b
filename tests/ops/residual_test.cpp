#include "heed/ops/residual.h"

#include "heed/base/error.h"
#include "heed/ops/dropout.h"
#include "op_test.h"
#include "training.h"

using namespace heed;

TEST_CASE("residual: gradients, also where both inputs are one") {
  for (const double p : {0.0, 0.4}) {
    require_gradients({{5, 7}, {5, 7}}, [&](Graph<double>& graph, std::vector<Variable<double>>& in) {
      return residual(graph, in[0], in[1], p);
    });
    require_gradients({{3, 5}}, [&](Graph<double>& graph, std::vector<Variable<double>>& in) {
      return residual(graph, in[0], in[0], p);
    });
  }
}

TEST_CASE("residual: the sum of the one and dropout of the other") {
  Training<float> t;
  const auto a = t.normal({3, 45}), b = t.normal({3, 45});
  t.graph.set_dropout({7, 1});
  const auto y = residual(t.graph, a, b, 0.3);
  Training<float> other;
  other.graph.set_dropout({7, 1});
  const auto dropped = dropout(other.graph, other.graph.input(b.value), 0.3);
  for (std::int64_t i = 0; i < y.value.size(); ++i)
    CHECK(y.value[i] == doctest::Approx(a.value[i] + dropped.value[i]).epsilon(1e-6));
  CHECK_THROWS_WITH_AS(residual(t.graph, a, t.normal({3, 44}), 0),
                       "internal: residual: branch has shape [3, 44], expected [3, 45]", Error);
}
