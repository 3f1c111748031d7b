#include "heed/ops/matmul.h"

#include "heed/base/error.h"
#include "op_test.h"
#include "reference.h"
#include "training.h"

using namespace heed;

TEST_CASE("matmul and transpose: gradients of matrices and batches") {
  using Inputs = std::vector<Variable<double>>;
  require_gradients({{3, 5}, {5, 2}}, [](Graph<double>& graph, Inputs& in) { return matmul(graph, in[0], in[1]); });
  require_gradients({{2, 3, 5}, {2, 5, 4}},
                    [](Graph<double>& graph, Inputs& in) { return matmul(graph, in[0], in[1]); });
  require_gradients({{3, 20}}, [](Graph<double>& graph, Inputs& in) { return transpose(graph, in[0]); });
  require_gradients({{2, 3, 5}}, [](Graph<double>& graph, Inputs& in) { return transpose(graph, in[0]); });
}

TEST_CASE("matmul and transpose: as PyTorch") {
  for_each_torch_case("matmul", [](auto& test, const auto& data) {
    const auto a = test.input("a"), b = test.input("b");
    test.check(matmul(test.graph(), a, data["name"] == "transposed" ? transpose(test.graph(), b) : b));
  });
}

TEST_CASE("matmul: empty sums are 0; wrong shapes are named; transpose goes to and fro") {
  Training<float> t;
  const auto empty = matmul(t.graph, t.normal({2, 0}), t.normal({0, 3}));
  for (const float x : empty.value.span()) CHECK(x == 0);
  CHECK(matmul(t.graph, t.normal({0, 4}), t.normal({4, 3})).shape() == Shape{0, 3});
  CHECK_THROWS_WITH_AS(matmul(t.graph, t.normal({2, 3}), t.normal({4, 5})),
                       "internal: matmul: b has shape [4, 5], expected [3, 5]", Error);
  CHECK_THROWS_WITH_AS(matmul(t.graph, t.normal({2}), t.normal({4, 5})),
                       "internal: matmul: a has shape [2], expected 2 or 3 dimensions", Error);
  const auto x = t.normal({2, 37, 18});
  const auto y = transpose(t.graph, x);
  CHECK(y.shape() == Shape{2, 18, 37});
  CHECK(largest_difference(transpose(t.graph, y).value, x.value) == 0);
}
