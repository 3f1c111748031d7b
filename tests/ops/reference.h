#pragma once

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "heed/autograd/graph.h"

namespace heed {

/// Reads PyTorch's results from tests/ops/reference/NAME.json, which scripts/reference/make_torch_reference.py wrote.
inline nlohmann::json torch_reference(const std::string& name) {
  std::ifstream in(std::string(HEED_TEST_DATA) + "/ops/reference/" + name + ".json");
  REQUIRE(in.good());
  return nlohmann::json::parse(in);
}

/// One case of a reference file. A test takes the case's inputs as variables of a graph, computes an op, and compares
/// the output and the gradients with PyTorch's.
template <class T>
class TorchCase {
 public:
  explicit TorchCase(const nlohmann::json& data) : data_(data) {}

  Graph<T>& graph() { return graph_; }
  const nlohmann::json& options() const { return data_.at("options"); }

  Tensor<T> tensor(const nlohmann::json& x) {
    const auto dims = x.at("shape").get<std::vector<std::int64_t>>();
    const Tensor<T> out = arena_.tensor<T>(Shape(dims));
    for (std::int64_t i = 0; i < out.size(); ++i)
      out[i] = static_cast<T>(x.at("data")[static_cast<std::size_t>(i)].template get<double>());
    return out;
  }
  /// Returns an input of the case as a variable whose gradient will be computed.
  Variable<T> input(const std::string& name) {
    inputs_.push_back({name, graph_.input(tensor(data_.at("inputs").at(name)), true)});
    return inputs_.back().second;
  }
  /// Checks the output y of an op that has one output, runs the backward pass, and checks the gradients of all inputs.
  void check(const Variable<T>& y) {
    INFO("case ", data_.at("name").get<std::string>(), std::is_same_v<T, float> ? " float" : " double");
    check_tensor("y", y.value, data_.at("outputs").at("y"));
    const Tensor<T> weights = tensor(data_.at("output_gradients").at("y"));
    const Variable<T> loss = graph_.result({});
    graph_.record([loss, weights, y](auto&) {
      for (std::int64_t i = 0; i < weights.size(); ++i) y.gradient.sum()[i] += loss.gradient.sum()[0] * weights[i];
    });
    graph_.backward(loss);
    for (const auto& [name, variable] : inputs_)
      check_tensor("gradient of " + name, variable.gradient.sum(), data_.at("gradients").at(name));
  }

  /// Returns what op(graph) computes in inference: `graph` records nothing.
  template <class Op>
  Tensor<T> inference(Op op) {
    Graph<T> graph(device_, values_);
    return op(graph).value;
  }

  static void check_tensor(const std::string& what, Tensor<T> actual, const nlohmann::json& expected) {
    const double tolerance = std::is_same_v<T, float> ? 1e-5 : 1e-8;
    REQUIRE(actual.size() == static_cast<std::int64_t>(expected.at("data").size()));
    for (std::int64_t i = 0; i < actual.size(); ++i) {
      const double x = expected.at("data")[static_cast<std::size_t>(i)].template get<double>();
      INFO(what, " element ", i, ": ", actual[i], ", PyTorch ", x);
      CHECK(std::abs(static_cast<double>(actual[i]) - x) <= tolerance * std::max(1.0, std::abs(x)));
    }
  }

 private:
  nlohmann::json data_;
  Arena arena_;
  CpuContext device_{arena_};
  ParameterLayout layout_;
  ParameterValues<T> values_{layout_}, gradients_{layout_};
  Graph<T> graph_{device_, values_, gradients_};
  std::vector<std::pair<std::string, Variable<T>>> inputs_;
};

/// Calls body(test) with each case of a reference file, in float and in double.
template <class Body>
void for_each_torch_case(const std::string& name, Body body) {
  const nlohmann::json reference = torch_reference(name);
  REQUIRE_FALSE(reference.at("cases").empty());
  for (const auto& data : reference.at("cases")) {
    TorchCase<float> single(data);
    body(single, data);
    TorchCase<double> twice(data);
    body(twice, data);
  }
}

}  // namespace heed
