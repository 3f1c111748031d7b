#include "heed/autograd/graph.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <vector>

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

/// y = x^2 / 2 of positive numbers, whose way back reads both: dx += x dy, x as it is and as sqrt(2 y).
Variable<double> half_square(Graph<double>& graph, const Variable<double>& x) {
  const Variable<double> y = graph.result(x.shape());
  for (std::int64_t i = 0; i < x.value.size(); ++i) y.value[i] = x.value[i] * x.value[i] / 2;
  graph.record([x, y] {
    const Tensor<double> dx = x.gradient.sum(), dy = y.gradient.sum();
    for (std::int64_t i = 0; i < dx.size(); ++i) dx[i] += (x.value[i] + std::sqrt(2 * y.value[i])) / 2 * dy[i];
  });
  return y;
}

}  // namespace

TEST_CASE("GradientPool: what was given back, then what was lent, then memory of its own") {
  GradientPool<double> pool;
  std::vector<double> lent(120);
  const auto first = pool.take(100);
  CHECK(pool.take(100).memory != first.memory);
  pool.lend({lent.data(), 120});
  pool.give_back(first);
  CHECK(pool.take(110).memory == lent.data());  // what was given back is too small
  CHECK(pool.take(90).memory == first.memory);
  pool.lend({lent.data(), 120});
  pool.reset();
  CHECK(pool.take(100).memory != lent.data());
}

TEST_CASE("gradients take the memory of values only when nobody reads these any more") {
  Training<double> t;
  const std::int64_t size = 50'000;
  constexpr int kChain = 6;
  for (int run = 0; run < 3; ++run) {
    t.graph.reset();
    std::vector<Variable<double>> x, branches;
    for (int k = 0; k < 4; ++k) {
      x.push_back(t.normal({size}));
      for (std::int64_t i = 0; i < size; ++i) x.back().value[i] = 1 + 1e-4 * x.back().value[i];
      branches.push_back(half_square(t.graph, x.back()));
    }
    // The way back of the chain needs one gradient at a time and leaves its values; then four are wanted at once.
    Variable<double> y =
        sum_of(t.graph, sum_of(t.graph, branches[0], branches[1]), sum_of(t.graph, branches[2], branches[3]));
    for (int i = 0; i < kChain; ++i) y = half_square(t.graph, y);
    const Tensor<double> ones = t.arena.zeros<double>({size});
    std::fill_n(ones.data(), size, 1.0);
    t.backward(y, ones);
    double worst = 0;
    for (std::int64_t i = 0; i < size; ++i) {
      double value = 0, product = 1;  // of the chain's values but the last
      for (const auto& one : x) value += one.value[i] * one.value[i] / 2;
      for (int k = 0; k < kChain; ++k, value = value * value / 2) product *= value;
      for (const auto& one : x) worst = std::max(worst, std::abs(one.gradient.sum()[i] / (one.value[i] * product) - 1));
    }
    CHECK(worst < 1e-12);
    // Two for the chain; those of the branches and of x are in what its values and the sums leave.
    const std::size_t gradients = t.graph.reserved() - t.arena.reserved();
    CHECK(gradients < 3 * static_cast<std::size_t>(size) * sizeof(double));
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
