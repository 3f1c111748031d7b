#include "heed/ops/batch_norm.h"

#include "heed/base/error.h"
#include "op_test.h"
#include "reference.h"
#include "training.h"

using namespace heed;

namespace {

/// Returns sums of zeros for batch_norm() in training.
template <class T>
RunningStatistics<T> no_sums(Graph<T>& graph, std::int64_t columns) {
  const auto zeros = [&] { return graph.device().upload(graph.host_arena().template zeros<T>({columns + 1})); };
  return {{}, {}, zeros(), zeros()};
}

}  // namespace

TEST_CASE("batch_norm: gradients, odd sizes, each input alone") {
  for (const std::int64_t d : {1, 7, 33})
    require_gradients({{5, d}, {d}, {d}}, [](Graph<double>& graph, std::vector<Variable<double>>& in) {
      return batch_norm(graph, in[0], in[1], in[2], no_sums(graph, in[1].value.size()), 1e-3);
    });
  require_gradients({{4, 5}}, [](Graph<double>& graph, std::vector<Variable<double>>& in) {
    const auto scale = constant(graph, {5}, [](std::int64_t) { return 2.0; }), bias = scale;
    return batch_norm(graph, in[0], scale, bias, no_sums(graph, 5), 1e-3);
  });
  require_gradients({{5}, {5}}, [](Graph<double>& graph, std::vector<Variable<double>>& in) {
    const auto x = constant(graph, {2, 5}, [](std::int64_t i) { return static_cast<double>(i * i); });
    return batch_norm(graph, x, in[0], in[1], no_sums(graph, 5), 1e-3);
  });
}

TEST_CASE("batch_norm: as PyTorch in training and inference, with its running averages, on every instruction set") {
  for_each_torch_case("batch_norm", [](auto& test, const auto& data) {
    auto& graph = test.graph();
    const auto x = test.input("x"), scale = test.input("scale"), bias = test.input("bias");
    const auto& options = data["options"];
    const double epsilon = options["epsilon"].template get<double>(), share = options["momentum"];
    const std::int64_t n = x.value.columns();
    auto running = no_sums(graph, n);
    test.check(batch_norm(graph, x, scale, bias, running, epsilon));
    CHECK(running.mean_sum[n] == x.value.rows());
    running.mean = test.tensor(options["before"]["mean"]);
    running.variance = test.tensor(options["before"]["variance"]);
    for (const auto& [average, sum] :
         {std::pair(running.mean, running.mean_sum), {running.variance, running.variance_sum}})
      for (std::int64_t i = 0; i < n; ++i)
        average[i] += static_cast<decltype(sum[i] + 0)>(share) * (sum[i] / sum[n] - average[i]);
    test.check_tensor("running mean", running.mean, options["after"]["mean"]);
    test.check_tensor("running variance", running.variance, options["after"]["variance"]);
    test.check_tensor("inference", test.inference([&](auto& inference) {
      return batch_norm(inference, x, scale, bias, running, epsilon);
    }),
                      options["inference"]);
  });
}

TEST_CASE("batch_norm: one row has no variance, no rows have no statistics, and a wrong shape is named") {
  Training<float> t;
  const auto scale = t.normal({3}), bias = t.normal({3});
  const auto running = no_sums(t.graph, 3);
  const auto y = batch_norm(t.graph, t.normal({1, 3}), scale, bias, running, 1e-5);
  CHECK(largest_difference(y.value, Tensor<float>(bias.value.data(), {1, 3})) == 0);
  CHECK(running.mean_sum[3] == 1);
  CHECK(running.variance_sum[3] == 0);
  CHECK(batch_norm(t.graph, t.normal({0, 3}), scale, bias, running, 1e-5).shape() == Shape{0, 3});
  CHECK(running.mean_sum[3] == 1);
  CHECK_THROWS_WITH_AS(batch_norm(t.graph, t.normal({2, 3}), scale, t.normal({4}), running, 1e-5),
                       "internal: batch_norm: bias has shape [4], expected [3]", Error);
  CHECK_THROWS_WITH_AS(batch_norm(t.graph, t.normal({2, 3}), scale, bias, {}, 1e-5),
                       "internal: batch_norm: sum of means has shape [], expected [4]", Error);
}

TEST_CASE("running averages lie behind the other parameters, with room for a number of tokens") {
  ParameterLayout layout;
  layout.add("weight", {3}, Initialiser::zeros());
  CHECK(layout.trained_size() == 3);
  const ParameterId mean = layout.add_running("mean", {4}, Initialiser::ones());
  layout.add_running("variance", {16}, Initialiser::ones());
  CHECK(layout.trained_size() == layout[mean].offset);
  CHECK(layout.storage_size() == 16 + 16 + 16 + 1);
  CHECK(layout.parameter_count() == 3);
  REQUIRE(layout.running().size() == 2);
  CHECK(layout.running()[0].name == "mean");
  CHECK_THROWS_WITH_AS(layout.add("bias", {3}, Initialiser::zeros()),
                       "internal: parameter bias is defined after a running average", Error);
  CHECK_THROWS_WITH_AS(layout.add_running("mean", {4}, Initialiser::zeros()),
                       "parameter mean is defined twice (give each layer a name of its own)", Error);
}
