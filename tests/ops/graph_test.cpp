#include "heed/autograd/graph.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>

#include "training.h"

using namespace heed;

namespace {

/// y = factor x, the gradient by fill() where it is empty.
Variable<double> scaled(Graph<double>& graph, const Variable<double>& x, double factor) {
  const Variable<double> y = graph.result(x.shape());
  for (std::int64_t i = 0; i < x.value.size(); ++i) y.value[i] = factor * x.value[i];
  graph.record([x, y, factor] {
    const bool adds = !x.gradient.empty();
    const Tensor<double> dx = x.gradient.fill(), dy = y.gradient.sum();
    for (std::int64_t i = 0; i < dx.size(); ++i) dx[i] = (adds ? dx[i] : 0) + factor * dy[i];
  });
  return y;
}

Variable<double> sum_of(Graph<double>& graph, const Variable<double>& a, const Variable<double>& b) {
  const Variable<double> y = graph.result(a.shape());
  for (std::int64_t i = 0; i < y.value.size(); ++i) y.value[i] = a.value[i] + b.value[i];
  graph.record([a, b, y] {
    for (const Variable<double>& x : {a, b}) {
      const Tensor<double> dx = x.gradient.sum(), dy = y.gradient.sum();
      for (std::int64_t i = 0; i < dx.size(); ++i) dx[i] += dy[i];
    }
  });
  return y;
}

/// y = x^2 / 2, whose way back reads the value.
Variable<double> half_square(Graph<double>& graph, const Variable<double>& x) {
  const Variable<double> y = graph.result(x.shape());
  for (std::int64_t i = 0; i < x.value.size(); ++i) y.value[i] = x.value[i] * x.value[i] / 2;
  graph.record([x, y] {
    const Tensor<double> dx = x.gradient.sum(), dy = y.gradient.sum();
    for (std::int64_t i = 0; i < dx.size(); ++i) dx[i] += x.value[i] * dy[i];
  });
  return y;
}

}  // namespace

TEST_CASE("gradients take the memory of values only when nobody reads these any more") {
  Training<double> t;
  const std::int64_t size = 50'000;
  for (int run = 0; run < 3; ++run) {
    t.graph.reset();
    const Variable<double> x = t.normal({size});
    for (std::int64_t i = 0; i < size; ++i) x.value[i] = 2 + 1e-4 * x.value[i];
    Variable<double> y = x;
    for (int i = 0; i < 12; ++i) y = half_square(t.graph, y);
    const Tensor<double> ones = t.arena.zeros<double>({size});
    std::fill_n(ones.data(), size, 1.0);
    t.backward(y, ones);
    double worst = 0;
    for (std::int64_t i = 0; i < size; ++i) {
      double value = x.value[i], expected = 1;  // the product of all values but the last
      for (int k = 0; k < 12; ++k, value = value * value / 2) expected *= value;
      worst = std::max(worst, std::abs(x.gradient.sum()[i] / expected - 1));
    }
    CHECK(worst < 1e-12);
    const std::size_t gradients = t.graph.reserved() - t.arena.reserved();
    CHECK(gradients < 4 * static_cast<std::size_t>(size) * sizeof(double));
  }
}

TEST_CASE("gradients of results: used twice, never, and in memory of few of them") {
  Training<double> t;
  const std::int64_t size = 100'000;
  for (int run = 0; run < 3; ++run) {
    t.graph.reset();
    const Variable<double> x = t.normal({size});
    Variable<double> y = x;
    for (int i = 0; i < 40; ++i) {
      const Variable<double> twice = scaled(t.graph, y, 0.5);
      scaled(t.graph, twice, 3);  // leads nowhere: adds nothing
      y = sum_of(t.graph, twice, twice);
    }
    const Tensor<double> ones = t.arena.zeros<double>({size});
    std::fill_n(ones.data(), size, 1.0);
    t.backward(y, ones);
    CHECK(x.gradient.sum()[0] == 1);
    CHECK(x.gradient.sum()[size - 1] == 1);
    const std::size_t gradients = t.graph.reserved() - t.arena.reserved();
    CHECK(gradients < 8 * static_cast<std::size_t>(size) * sizeof(double));
  }
}
