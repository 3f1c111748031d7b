#include "heed/ops/packed_linear.h"

#include "heed/base/error.h"
#include "heed/base/thread_team.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <map>

#include "op_test.h"
#include "reference.h"
#include "training.h"

using namespace heed;

TEST_CASE("linear: gradients, every activation, with and without bias, odd sizes") {
  for (const Activation activation :
       {Activation::none, Activation::relu, Activation::gelu, Activation::swish, Activation::tanh}) {
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

TEST_CASE("linear: threads that share a product give the same bits, in every precision") {
  Training<float> t;
  ThreadTeam team(3);
  const Tensor<float> x = t.normal({5, 310}).value, w = t.normal({1021, 310}).value, bias = t.normal({1021}).value;
  for (const Precision precision : {Precision::float32, Precision::bfloat16, Precision::int8})
    for (const std::int64_t rows : {1, 2, 5}) {
      CAPTURE(static_cast<int>(precision));
      CAPTURE(rows);
      std::vector<float> results[2];
      for (ThreadTeam* const shared : {static_cast<ThreadTeam*>(nullptr), &team}) {
        CpuContext device{t.arena, precision, shared};
        ParameterLayout layout;
        ParameterValues<float> none(layout);
        Graph<float> graph(device, none);
        const Tensor<float> y = t.arena.tensor<float>({rows, 1021});
        LinearInput<float>(device, graph.packed(), Tensor<float>(x.data(), {rows, 310}))
            .multiply(w, bias, Activation::relu, y);
        results[shared ? 1 : 0].assign(y.data(), y.data() + y.size());
      }
      CHECK(results[0] == results[1]);
    }
}

TEST_CASE("linear: a result kept for products alone changes no bit of what comes of it") {
  for (const Precision precision : {Precision::float32, Precision::bfloat16})
    for (const Activation activation : {Activation::none, Activation::relu, Activation::gelu}) {
      CAPTURE(static_cast<int>(precision));
      CAPTURE(static_cast<int>(activation));
      std::vector<float> results[2];
      for (const ResultUse use : {ResultUse::any, ResultUse::linear}) {
        Training<float> t;
        t.device.precision = precision;
        const auto x = t.normal({517, 40}), w = t.normal({75, 40}), bias = t.normal({75});
        const auto w2 = t.normal({21, 75}), bias2 = t.normal({21}), dy = t.normal({517, 21});
        const auto inner = linear(t.graph, x, w, bias, activation, use);
        CHECK(static_cast<bool>(inner.rounded) == (use == ResultUse::linear && takes_bfloat16(t.device)));
        const auto y = linear(t.graph, inner, w2, bias2);
        std::vector<float>& all = results[use == ResultUse::linear];
        all.assign(y.value.data(), y.value.data() + y.value.size());
        t.backward(y, dy.value);
        for (const auto& each : {x, w, bias, w2, bias2}) {
          const Tensor<float> gradient = each.gradient.sum();
          all.insert(all.end(), gradient.data(), gradient.data() + gradient.size());
        }
      }
      CHECK(results[0] == results[1]);
    }
}

TEST_CASE("linear: rows selected from a weight give the bits they give in the whole, in every precision") {
  Training<float> t;
  ThreadTeam team(3);
  const Tensor<float> x = t.normal({21, 310}).value, w = t.normal({1021, 310}).value, bias = t.normal({1021}).value;
  for (const Precision precision : {Precision::float32, Precision::bfloat16, Precision::int8})
    for (const std::int64_t rows : {1, 5, 21})
      for (const int step : {1, 3, 40, 1021})
        for (ThreadTeam* const shared : {static_cast<ThreadTeam*>(nullptr), &team}) {
          CAPTURE(static_cast<int>(precision));
          CAPTURE(rows);
          CAPTURE(step);
          CpuContext device{t.arena, precision, shared};
          ParameterLayout layout;
          ParameterValues<float> none(layout);
          Graph<float> graph(device, none);
          std::vector<std::int32_t> selected;
          for (int i = step / 2 % 1021; i < 1021; i += step) selected.push_back(i);
          const LinearInput<float> left(device, graph.packed(), Tensor<float>(x.data(), {rows, 310}));
          for (const Tensor<float> b : {bias, Tensor<float>()}) {
            const Tensor<float> whole = t.arena.tensor<float>({rows, 1021});
            left.multiply(w, b, Activation::none, whole);
            const auto part = PackedWeight<float>::pack(device, graph.packed(), w, b, selected, t.arena);
            const Tensor<float> y = t.arena.tensor<float>({rows, part.n});
            left.multiply(part, y);
            bool same = true;
            for (std::int64_t r = 0; r < rows; ++r)
              for (std::size_t i = 0; i < selected.size(); ++i) same = same && y.row(r)[i] == whole.row(r)[selected[i]];
            CHECK(same);
          }
        }
}

TEST_CASE("linear: packed parameters keep a weight in each form and shape that is asked for") {
  Training<float> t;
  ParameterLayout layout;
  const ParameterId id = layout.add("weight", {96, 64}, Initialiser::normal(1));
  ParameterValues<float> values(layout);
  values.initialise(1);
  const Tensor<float> x = t.normal({5, 96}).value;
  const auto product = [&](PackedParameters<float>& packed, Precision precision, const Shape& shape) {
    CpuContext device{t.arena, precision};
    Graph<float> graph(device, values, &packed);
    const Tensor<float> y = t.arena.tensor<float>({5, shape[0]});
    LinearInput<float>(device, graph.packed(), Tensor<float>(x.data(), {5, shape[1]}))
        .multiply(values.view(id, shape), {}, Activation::none, y);
    return std::vector<float>(y.data(), y.data() + y.size());
  };
  PackedParameters<float> shared(values);
  for (int round = 0; round < 2; ++round)
    for (const Precision precision : {Precision::int8, Precision::float32, Precision::bfloat16})
      for (const Shape& shape : {Shape{96, 64}, Shape{64, 96}}) {
        CAPTURE(static_cast<int>(precision));
        CAPTURE(shape[0]);
        PackedParameters<float> alone(values);
        CHECK(product(shared, precision, shape) == product(alone, precision, shape));
      }
}

TEST_CASE("linear: no rows, no columns and no inner width give empty sums, in every precision") {
  Training<float> t;
  ThreadTeam team(2);
  const Tensor<float> x = t.normal({70, 40}).value, w = t.normal({70, 40}).value, bias = t.normal({70}).value;
  for (const Precision precision : {Precision::float32, Precision::bfloat16, Precision::int8})
    for (ThreadTeam* const shared : {static_cast<ThreadTeam*>(nullptr), &team})
      for (const auto& [rows, n, k] : std::vector<std::array<std::int64_t, 3>>{{3, 70, 0}, {0, 70, 40}, {3, 0, 40}}) {
        CAPTURE(static_cast<int>(precision));
        CAPTURE(k);
        CpuContext device{t.arena, precision, shared};
        ParameterLayout layout;
        ParameterValues<float> none(layout);
        Graph<float> graph(device, none);
        const Tensor<float> y = t.arena.tensor<float>({rows, n});
        std::fill_n(y.data(), y.size(), 7.0F);
        LinearInput<float>(device, graph.packed(), Tensor<float>(x.data(), {rows, k}))
            .multiply(Tensor<float>(w.data(), {n, k}), Tensor<float>(bias.data(), {n}), Activation::none, y);
        for (std::int64_t i = 0; i < y.size(); ++i) CHECK(y[i] == bias[i % n]);
      }
}

TEST_CASE("linear: as PyTorch, each activation") {
  for_each_torch_case("linear", [](auto& test, const auto& data) {
    const std::map<std::string, Activation> activations = {{"none", Activation::none},
                                                           {"relu", Activation::relu},
                                                           {"gelu", Activation::gelu},
                                                           {"swish", Activation::swish},
                                                           {"tanh", Activation::tanh}};
    const auto x = test.input("x"), weight = test.input("weight"), bias = test.input("bias");
    test.check(linear(test.graph(), x, weight, bias, activations.at(data["name"].template get<std::string>())));
  });
}

namespace {

/// Returns the largest error of gelu and of the derivative of gelu on [-12, 12], compared with std::erfc().
template <class T>
double gelu_error() {
  Training<T> t;
  const std::int64_t n = 2401;
  const auto x = t.normal({n, 1}), weight = t.normal({1, 1}), one = t.normal({n, 1});
  weight.value[0] = 1;
  for (std::int64_t i = 0; i < n; ++i) {
    x.value[i] = static_cast<T>(i - 1200) / 100;
    one.value[i] = 1;
  }
  const auto y = linear(t.graph, x, weight, {}, Activation::gelu);
  t.backward(y, one.value);
  double worst = 0;
  for (std::int64_t i = 0; i < n; ++i) {
    const double z = x.value[i], phi = 0.5 * std::erfc(-z / std::sqrt(2.0));
    const double density = std::exp(-z * z / 2) / std::sqrt(2 * std::acos(-1.0));
    worst = std::max({worst, std::abs(y.value[i] - z * phi) / std::max(1.0, z),
                      std::abs(x.gradient.sum()[i] - (phi + z * density))});
  }
  return worst;
}

}  // namespace

TEST_CASE("linear: gelu is exact to the last bits on every instruction set") {
  CHECK(gelu_error<float>() < 5e-7);
  CHECK(gelu_error<double>() < 2e-15);
}
