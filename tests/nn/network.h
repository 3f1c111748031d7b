#pragma once

#include <doctest/doctest.h>

#include <cmath>
#include <optional>

#include "heed/autograd/graph.h"

namespace heed {

/// The parameters of a layer and a graph for training or inference.
template <class T>
struct Network {
  ParameterLayout layout;
  Arena arena;
  CpuContext device{arena};
  std::optional<ParameterValues<T>> values, gradients;
  std::optional<Graph<T>> graph;
  std::uint64_t seed = 1;

  /// Creates parameters with random values, and the graph. Call begin() after the layers have added their parameters.
  void begin(bool training = true) {
    values.emplace(layout);
    gradients.emplace(layout);
    values->initialise(1);
    if (training)
      graph.emplace(device, *values, *gradients);
    else
      graph.emplace(device, *values);
  }
  /// Returns an input of random numbers, whose gradient will be computed in training. Each call draws other numbers.
  Variable<T> input(const Shape& shape) {
    const RandomStream stream(seed++, RandomUse::sampling);
    const Tensor<T> value = arena.tensor<T>(shape);
    for (std::int64_t i = 0; i < value.size(); ++i)
      value[i] = static_cast<T>(stream.normal(static_cast<std::uint64_t>(i)));
    return graph->input(value, true);
  }
};

/// Checks the gradients of all parameters against finite differences of the scalar that loss() computes.
template <class Loss>
void check_parameter_gradients(Network<double>& net, Loss loss) {
  net.graph->backward(loss());
  constexpr double kStep = 1e-5;
  double worst = 0;
  for (int j = 0; j < std::ssize(net.layout.all()); ++j)
    for (std::int64_t i = 0; i < (*net.values)[{j}].size(); ++i) {
      double& x = (*net.values)[{j}][i];
      const double before = x;
      x = before + kStep;
      const double above = loss().value[0];
      x = before - kStep;
      const double below = loss().value[0];
      x = before;
      worst = std::max(worst, std::abs((above - below) / (2 * kStep) - (*net.gradients)[{j}][i]));
    }
  CHECK(worst < 1e-7);
}

}  // namespace heed
