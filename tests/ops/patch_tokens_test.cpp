#include "heed/ops/patch_tokens.h"

#include "heed/base/error.h"
#include "op_test.h"
#include "training.h"

using namespace heed;

TEST_CASE("patch tokens: gradients, with and without a class token") {
  require_gradients({{6, 4}, {1, 4}, {4, 4}}, [&](Graph<double>& graph, std::vector<Variable<double>>& in) {
    return patch_tokens(graph, in[0], in[1], in[2]);
  });
  require_gradients({{6, 4}, {3, 4}}, [&](Graph<double>& graph, std::vector<Variable<double>>& in) {
    return patch_tokens(graph, in[0], {}, in[1]);
  });
}

TEST_CASE("patch tokens: the class token comes first in each image") {
  Training<float> t;
  const auto patches = t.normal({4, 3}), token = t.normal({1, 3}), positions = t.normal({3, 3});
  const auto y = patch_tokens(t.graph, patches, token, positions);
  CHECK(y.shape() == Shape{6, 3});
  CHECK(y.value.row(3)[1] == token.value[1] + positions.value.row(0)[1]);
  CHECK(y.value.row(5)[2] == patches.value.row(3)[2] + positions.value.row(2)[2]);
  CHECK_THROWS_WITH_AS(patch_tokens(t.graph, t.normal({5, 3}), token, positions),
                       "internal: patch_tokens: patches has shape [5, 3], expected [4, 3]", Error);
}
