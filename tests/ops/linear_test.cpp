#include "heed/ops/linear.h"

#include "heed/base/error.h"

#include <cmath>
#include <map>

#include "op_test.h"
#include "reference.h"

using namespace heed;

TEST_CASE("linear: gradients, every activation, with and without bias, odd sizes") {
  for (const Activation activation : {Activation::none, Activation::relu, Activation::gelu, Activation::swish}) {
    require_gradients({{5, 7}, {9, 7}, {9}}, [&](Graph<double>& graph, std::vector<Variable<double>>& in) {
      return linear(graph, in[0], in[1], in[2], activation);
    });
    require_gradients({{3, 4}, {2, 4}}, [&](Graph<double>& graph, std::vector<Variable<double>>& in) {
      return linear(graph, in[0], in[1], Variable<double>(), activation);
    });
  }
}

TEST_CASE("linear: a wrong shape names the op, the argument and both shapes") {
  Arena arena;
  CpuContext device{arena};
  ParameterLayout layout;
  ParameterValues<float> values(layout);
  Graph<float> graph(device, values);
  const auto x = graph.input(arena.zeros<float>({3, 4})), w = graph.input(arena.zeros<float>({5, 6}));
  CHECK_THROWS_WITH_AS(linear(graph, x, w, {}), "internal: linear: weight has shape [5, 6], expected [5, 4]", Error);
}

TEST_CASE("linear: as PyTorch, each activation") {
  for_each_torch_case("linear", [](auto& test, const auto& data) {
    const std::map<std::string, Activation> activations = {{"none", Activation::none},
                                                           {"relu", Activation::relu},
                                                           {"gelu", Activation::gelu},
                                                           {"swish", Activation::swish}};
    const auto x = test.input("x"), weight = test.input("weight"), bias = test.input("bias");
    test.check(linear(test.graph(), x, weight, bias, activations.at(data["name"].template get<std::string>())));
  });
}
