#include "heed/ops/sequence_mean.h"

#include "heed/base/error.h"
#include "op_test.h"
#include "training.h"

using namespace heed;

namespace {

const std::vector<std::int32_t> kMeanOffsets = {0, 2, 3, 7};

}  // namespace

TEST_CASE("sequence mean: gradients") {
  require_gradients({{7, 3}}, [&](Graph<double>& graph, std::vector<Variable<double>>& in) {
    return sequence_mean(graph, in[0], {kMeanOffsets});
  });
}

TEST_CASE("sequence mean: the mean of each sequence") {
  Training<double> t;
  const auto x = t.normal({7, 2}), wrong = t.normal({6, 2});
  const auto y = sequence_mean(t.graph, x, {kMeanOffsets});
  CHECK(y.shape() == Shape{3, 2});
  CHECK(y.value.row(0)[1] == doctest::Approx((x.value.row(0)[1] + x.value.row(1)[1]) / 2).epsilon(1e-14));
  CHECK(y.value.row(1)[0] == x.value.row(2)[0]);
  CHECK_THROWS_WITH_AS(sequence_mean(t.graph, wrong, {kMeanOffsets}),
                       "internal: sequence_mean: x has shape [6, 2], expected [7, 2]", Error);
}
