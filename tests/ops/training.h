#pragma once

#include <algorithm>
#include <cmath>

#include "heed/autograd/graph.h"

namespace heed {

/// A graph that records the backward pass, as in training, with the arena, device and parameters that a graph needs.
template <class T>
struct Training {
  Arena arena;
  CpuContext device{arena};
  ParameterLayout layout;
  ParameterValues<T> values{layout}, gradients{layout};
  Graph<T> graph{device, values, gradients};
  std::uint64_t seed = 1;

  /// Returns an input of random numbers from the standard normal distribution, whose gradient will be computed. Each
  /// call draws other numbers.
  Variable<T> normal(const Shape& shape) {
    const RandomStream stream(seed++, RandomUse::sampling);
    const Tensor<T> value = arena.template tensor<T>(shape);
    for (std::int64_t i = 0; i < value.size(); ++i)
      value[i] = static_cast<T>(stream.normal(static_cast<std::uint64_t>(i)));
    return graph.input(value, true);
  }

  /// Runs the backward pass from `y`, whose gradient is `dy`.
  void backward(const Variable<T>& y, Tensor<T> dy) {
    const Variable<T> loss = graph.result({});
    graph.record([y, dy](auto&) {
      for (std::int64_t i = 0; i < dy.size(); ++i) y.gradient.sum()[i] += dy[i];
    });
    graph.backward(loss);
  }
};

/// Returns the largest absolute difference of two tensors, element by element, or 1e9 where the shapes differ.
template <class T>
double largest_difference(Tensor<T> a, Tensor<T> b) {
  double worst = a.shape() == b.shape() ? 0 : 1e9;
  for (std::int64_t i = 0; worst < 1e9 && i < a.size(); ++i)
    worst = std::max(worst, std::abs(static_cast<double>(a[i]) - static_cast<double>(b[i])));
  return worst;
}

}  // namespace heed
