#include "heed/ops/cross_entropy.h"

#include <cmath>

#include "op_test.h"

using namespace heed;

TEST_CASE("cross-entropy: gradients, with and without bias and smoothing, an arriving gradient that is not 1") {
  static const std::vector<std::int32_t> targets{3, 0, 6, 3, 1};
  for (const double smoothing : {0.0, 0.1}) {
    const CrossEntropyOptions options{smoothing, 0.25};
    require_gradients({{5, 4}, {7, 4}, {7}}, [&](Graph<double>& graph, std::vector<Variable<double>>& in) {
      return projection_cross_entropy(graph, in[0], in[1], in[2], targets, options);
    });
    require_gradients({{5, 4}, {7, 4}}, [&](Graph<double>& graph, std::vector<Variable<double>>& in) {
      return projection_cross_entropy(graph, in[0], in[1], {}, targets, options);
    });
  }
}
