#include "heed/ops/gated_unit.h"

#include "heed/base/error.h"
#include "heed/ops/arithmetic.h"
#include "op_test.h"
#include "reference.h"
#include "training.h"

using namespace heed;

namespace {

constexpr Activation kFunctions[] = {Activation::gelu, Activation::swish};

}  // namespace

TEST_CASE("gated_unit: gradients, odd sizes, and twice of one input") {
  for (const Activation f : kFunctions) {
    for (const std::int64_t columns : {2, 14, 66})
      require_gradients({{3, columns}}, [&](Graph<double>& graph, std::vector<Variable<double>>& in) {
        return gated_unit(graph, in[0], f);
      });
    require_gradients({{2, 6}}, [&](Graph<double>& graph, std::vector<Variable<double>>& in) {
      return add(graph, gated_unit(graph, in[0], f), gated_unit(graph, in[0], f));
    });
  }
}

TEST_CASE("gated_unit: as PyTorch, on every instruction set") {
  for_each_torch_case("gated_unit", [](auto& test, const auto& data) {
    const auto x = test.input("x");
    const bool gelu = data["options"]["activation"] == "gelu";
    test.check(gated_unit(test.graph(), x, gelu ? Activation::gelu : Activation::swish));
  });
}

TEST_CASE("gated_unit: a result for linear() alone is rounded where products round it, and inference rounds nothing") {
  for (const Activation f : kFunctions) {
    Training<float> t;
    const Variable<float> x = t.normal({5, 70});
    const Tensor<float> exact = gated_unit(t.graph, x, f, ResultUse::linear).value;
    REQUIRE(exact);
    t.device.precision = Precision::bfloat16;
    const Variable<float> y = gated_unit(t.graph, x, f, ResultUse::linear);
    CHECK(static_cast<bool>(y.rounded) == takes_bfloat16(Precision::bfloat16));
    if (y.rounded)
      for (std::int64_t i = 0; i < exact.size(); ++i) CHECK(from_bfloat16(y.rounded[i]) == round_to_bfloat16(exact[i]));
    CHECK(largest_difference(gated_unit(t.graph, x, f).value, exact) == 0);
    Graph<float> inference(t.device, t.values);
    CHECK(largest_difference(gated_unit(inference, x, f, ResultUse::linear).value, exact) == 0);
  }
}

TEST_CASE("gated_unit: no rows; an odd number of columns and other functions are errors") {
  Training<float> t;
  CHECK(gated_unit(t.graph, t.normal({0, 8}), Activation::gelu).shape() == Shape{0, 4});
  CHECK_THROWS_WITH_AS(gated_unit(t.graph, t.normal({2, 7}), Activation::gelu),
                       "internal: gated_unit: x has shape [2, 7], expected [2, 6]", Error);
  CHECK_THROWS_WITH_AS(gated_unit(t.graph, t.normal({2, 6}), Activation::relu),
                       "internal: gated_unit: the activation is neither gelu nor swish", Error);
}
