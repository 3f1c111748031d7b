#include "heed/ops/layer_norm.h"

#include "heed/base/error.h"
#include "heed/ops/residual_norm.h"
#include "op_test.h"
#include "reference.h"
#include "training.h"

using namespace heed;

TEST_CASE("layer_norm: gradients, odd sizes, each input alone") {
  for (const std::int64_t d : {2, 7, 64, 131})
    require_gradients({{3, d}, {d}, {d}}, [](Graph<double>& graph, std::vector<Variable<double>>& in) {
      return layer_norm(graph, in[0], in[1], in[2], 1e-5);
    });
  require_gradients({{3, 5}}, [](Graph<double>& graph, std::vector<Variable<double>>& in) {
    const auto ones = constant(graph, {5}, [](std::int64_t) { return 1.0; });
    return layer_norm(graph, in[0], ones, zeros(graph, {5}), 1e-5);
  });
  require_gradients({{5}, {5}}, [](Graph<double>& graph, std::vector<Variable<double>>& in) {
    const auto x = constant(graph, {2, 5}, [](std::int64_t i) { return static_cast<double>(i * i); });
    return layer_norm(graph, x, in[0], in[1], 1e-5);
  });
}

TEST_CASE("layer_norm: as PyTorch, on every instruction set") {
  for_each_torch_case("layer_norm", [](auto& test, const auto& data) {
    const auto x = test.input("x"), scale = test.input("scale"), bias = test.input("bias");
    test.check(layer_norm(test.graph(), x, scale, bias, data["options"]["epsilon"].template get<double>()));
  });
}

TEST_CASE("layer_norm: no rows, and inference gives what training gives") {
  Training<float> t;
  const auto x = t.normal({4, 33}), scale = t.normal({33}), bias = t.normal({33});
  Graph<float> inference(t.device, t.values);
  CHECK(largest_difference(layer_norm(t.graph, x, scale, bias, 1e-5).value,
                           layer_norm(inference, x, scale, bias, 1e-5).value) == 0);
  const auto empty = layer_norm(t.graph, t.normal({0, 33}), scale, bias, 1e-5);
  CHECK(empty.shape() == Shape{0, 33});
  CHECK_THROWS_WITH_AS(layer_norm(t.graph, x, t.normal({32}), bias, 1e-5),
                       "internal: layer_norm: scale has shape [32], expected [33]", Error);
}

TEST_CASE("layer_norm, rms_norm and residual_norm: in training, the result is rounded too where products round it") {
  for (const bool layer : {true, false}) {
    Training<float> t;
    const auto x = t.normal({5, 70}), branch = t.normal({5, 70}), scale = t.normal({70});
    const auto bias = layer ? t.normal({70}) : Variable<float>();
    Graph<float> inference(t.device, t.values);
    const auto norm = [&](Graph<float>& graph) {
      return layer ? layer_norm(graph, x, scale, bias, 1e-5) : rms_norm(graph, x, scale, 1e-5);
    };
    const auto add = [&](Graph<float>& graph) {
      return residual_norm(graph, layer ? RowNorm::layer : RowNorm::rms, x, branch, scale, bias, 1e-5, 0).normed;
    };
    const Variable<float> exact[] = {norm(t.graph), add(t.graph)};
    for (const Variable<float>& y : exact) CHECK_FALSE(y.rounded);
    t.device.precision = Precision::bfloat16;
    const Variable<float> found[] = {norm(t.graph), add(t.graph)};
    for (const int i : {0, 1}) {
      CHECK(largest_difference(found[i].value, exact[i].value) == 0);
      REQUIRE(static_cast<bool>(found[i].rounded) == takes_bfloat16(Precision::bfloat16));
      for (std::int64_t k = 0; found[i].rounded && k < exact[i].value.size(); ++k)
        CHECK(from_bfloat16(found[i].rounded[k]) == round_to_bfloat16(exact[i].value[k]));
    }
    CHECK_FALSE(norm(inference).rounded);
    CHECK_FALSE(add(inference).rounded);
  }
}

TEST_CASE("rms_norm: gradients, odd sizes, each input alone") {
  for (const std::int64_t d : {2, 7, 64, 131})
    require_gradients({{3, d}, {d}}, [](Graph<double>& graph, std::vector<Variable<double>>& in) {
      return rms_norm(graph, in[0], in[1], 1e-5);
    });
  require_gradients({{5}}, [](Graph<double>& graph, std::vector<Variable<double>>& in) {
    const auto x = constant(graph, {2, 5}, [](std::int64_t i) { return static_cast<double>(i * i); });
    return rms_norm(graph, x, in[0], 1e-5);
  });
}

TEST_CASE("rms_norm: as PyTorch, on every instruction set") {
  for_each_torch_case("rms_norm", [](auto& test, const auto& data) {
    const auto x = test.input("x"), scale = test.input("scale");
    test.check(rms_norm(test.graph(), x, scale, data["options"]["epsilon"].template get<double>()));
  });
}

TEST_CASE("rms_norm: no rows, a row of zeros, and a wrong shape") {
  Training<float> t;
  const auto scale = t.normal({33});
  CHECK(rms_norm(t.graph, t.normal({0, 33}), scale, 1e-5).shape() == Shape{0, 33});
  for (const float y : rms_norm(t.graph, t.graph.input(t.arena.zeros<float>({1, 33})), scale, 1e-5).value.span())
    CHECK(y == 0);
  CHECK_THROWS_WITH_AS(rms_norm(t.graph, t.normal({4, 33}), t.normal({32}), 1e-5),
                       "internal: rms_norm: scale has shape [32], expected [33]", Error);
}
