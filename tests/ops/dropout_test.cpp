#include "heed/ops/dropout.h"

#include "op_test.h"
#include "training.h"

using namespace heed;

TEST_CASE("dropout: gradients") {
  for (const double p : {0.0, 0.3, 1.0})
    require_gradients(
        {{5, 7}}, [&](Graph<double>& graph, std::vector<Variable<double>>& in) { return dropout(graph, in[0], p); });
}

TEST_CASE("dropout: kept values are scaled, dropped are 0, and the gradient has the same mask") {
  Training<float> t;
  const auto x = t.normal({3, 45});
  const auto y = dropout(t.graph, x, 0.25);
  t.backward(y, x.value);
  int dropped = 0;
  for (std::int64_t i = 0; i < x.value.size(); ++i) {
    const bool kept = y.value[i] != 0;
    dropped += !kept;
    CHECK(y.value[i] == (kept ? x.value[i] * (4.0f / 3) : 0));
    CHECK(x.gradient.sum()[i] == y.value[i]);
  }
  CHECK(dropped > 20);
  CHECK(dropped < 50);
}

TEST_CASE("dropout: x itself where p is 0 or nothing is recorded; no rows are no trouble") {
  Training<float> t;
  const auto x = t.normal({3, 5});
  CHECK(dropout(t.graph, x, 0).value.data() == x.value.data());
  Graph<float> inference(t.device, t.values);
  CHECK(dropout(inference, x, 0.5).value.data() == x.value.data());
  CHECK(dropout(t.graph, t.normal({0, 5}), 0.5).shape() == Shape{0, 5});
}
