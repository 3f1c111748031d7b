#include "heed/autograd/graph.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "training.h"

using namespace heed;

namespace {

/// The op y = factor x. The backward pass uses fill(): it overwrites an empty gradient of x and adds to another.
Variable<double> scaled(Graph<double>& graph, const Variable<double>& x, double factor) {
  const Variable<double> y = graph.result(x.shape());
  for (std::int64_t i = 0; i < x.value.size(); ++i) y.value[i] = factor * x.value[i];
  graph.record([x, y, factor](auto&) {
    const bool adds = !x.gradient.empty();
    const Tensor<double> dx = x.gradient.begin_writing(), dy = y.gradient.sum();
    for (std::int64_t i = 0; i < dx.size(); ++i) dx[i] = (adds ? dx[i] : 0) + factor * dy[i];
  });
  return y;
}

/// The op y = a + b. The backward pass adds to the gradients through sum().
Variable<double> sum_of(Graph<double>& graph, const Variable<double>& a, const Variable<double>& b) {
  const Variable<double> y = graph.result(a.shape());
  for (std::int64_t i = 0; i < y.value.size(); ++i) y.value[i] = a.value[i] + b.value[i];
  graph.record([a, b, y](auto&) {
    for (const Variable<double>& x : {a, b}) {
      const Tensor<double> dx = x.gradient.sum(), dy = y.gradient.sum();
      for (std::int64_t i = 0; i < dx.size(); ++i) dx[i] += dy[i];
    }
  });
  return y;
}

/// The op y = x^2 / 2 of positive numbers. The backward pass dx += x dy reads the values of x and of y: it computes x
/// as the mean of x and sqrt(2 y).
Variable<double> half_square(Graph<double>& graph, const Variable<double>& x) {
  const Variable<double> y = graph.result(x.shape());
  for (std::int64_t i = 0; i < x.value.size(); ++i) y.value[i] = x.value[i] * x.value[i] / 2;
  graph.record([x, y](auto&) {
    const Tensor<double> dx = x.gradient.sum(), dy = y.gradient.sum();
    for (std::int64_t i = 0; i < dx.size(); ++i) dx[i] += (x.value[i] + std::sqrt(2 * y.value[i])) / 2 * dy[i];
  });
  return y;
}

}  // namespace

TEST_CASE("GradientPool: what was given back, then what was lent, then memory of its own") {
  Arena arena;
  CpuContext device{arena};
  GradientPool<double> pool(device);
  std::vector<double> lent(120);
  const auto first = pool.take(100);
  CHECK(pool.take(100).memory != first.memory);
  pool.lend({lent.data(), 120});
  pool.give_back(first);
  CHECK(pool.take(110).memory == lent.data());  // the piece that was given back (100 elements) is too small
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
    // The backward pass of the chain of half_square() ops needs the memory of few gradients and frees the chain's
    // values. Then the four branches need gradients at the same time, which should use the freed memory of the values.
    Variable<double> y =
        sum_of(t.graph, sum_of(t.graph, branches[0], branches[1]), sum_of(t.graph, branches[2], branches[3]));
    for (int i = 0; i < kChain; ++i) y = half_square(t.graph, y);
    const Tensor<double> ones = t.arena.zeros<double>({size});
    std::fill_n(ones.data(), size, 1.0);
    t.backward(y, ones);
    double worst = 0;
    for (std::int64_t i = 0; i < size; ++i) {
      double value = 0, product = 1;  // `product`: the product of all values of the chain but the last
      for (const auto& one : x) value += one.value[i] * one.value[i] / 2;
      for (int k = 0; k < kChain; ++k, value = value * value / 2) product *= value;
      for (const auto& one : x) worst = std::max(worst, std::abs(one.gradient.sum()[i] / (one.value[i] * product) - 1));
    }
    CHECK(worst < 1e-12);
    // The pool's own memory holds the two gradients that the chain needs. The gradients of the branches and of x are in
    // the memory of the values of the chain and of the sums.
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
      scaled(t.graph, twice, 3);  // nothing reads this result, so it adds nothing to the gradients
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

TEST_CASE("a gradient that is stored as bfloat16 has one summand") {
  Training<float> t;
  const Variable<float> y = t.graph.rounded_result({3, 5});
  CHECK(y.is_rounded());
  CHECK(y.shape() == Shape{3, 5});
  CHECK_FALSE(y.gradient.rounded());
  const Tensor<Bfloat16> gradient = y.gradient.begin_writing_rounded();
  CHECK(gradient.shape() == Shape{3, 5});
  CHECK(y.gradient.rounded().data() == gradient.data());
  const char* const twice = "internal: a gradient to which several ops add cannot be stored as bfloat16";
  CHECK_THROWS_WITH_AS(y.gradient.begin_writing_rounded(), twice, Error);
  CHECK_THROWS_WITH_AS(y.gradient.sum(), "internal: an op adds to a gradient that is stored as bfloat16", Error);
  const Variable<float> z = t.graph.result({3, 5});
  CHECK_THROWS_WITH_AS(z.gradient.begin_writing_rounded(), twice, Error);
  z.gradient.allow_rounding();
  z.gradient.sum();
  CHECK_THROWS_WITH_AS(z.gradient.begin_writing_rounded(), twice, Error);
}
