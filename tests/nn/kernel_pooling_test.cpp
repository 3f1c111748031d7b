#include "heed/nn/kernel_pooling.h"

#include <doctest/doctest.h>

#include <cmath>
#include <limits>
#include <vector>

#include "heed/base/error.h"
#include "heed/base/random.h"

using namespace heed;
using doctest::Approx;

namespace {

using Numbers = std::vector<double>;

/// Returns the attention weights of a query; the first element tells whether there are any.
std::pair<bool, Numbers> weights_of(PoolingKernel kernel, double w, double query, const Numbers& keys) {
  Arena arena;
  CpuContext device{arena};
  Numbers weights(keys.size(), -1);
  const bool any = kernel_weights(device, kernel, w, query, keys, weights);
  return {any, weights};
}

double predict(PoolingKernel kernel, double w, double query, const Numbers& keys, const Numbers& values) {
  return pool(weights_of(kernel, w, query, keys).second, values);
}

/// Computes a prediction as the formula says, in long double.
long double by_formula(PoolingKernel kernel, long double w, long double query, const Numbers& keys,
                       const Numbers& values) {
  long double above = 0, below = 0;
  for (std::size_t i = 0; i < keys.size(); ++i) {
    const long double u = (query - keys[i]) * w;
    long double k = 1;
    if (kernel == PoolingKernel::gaussian) k = std::exp(-u * u / 2);
    if (kernel == PoolingKernel::boxcar) k = std::abs(u) < 1 ? 1 : 0;
    if (kernel == PoolingKernel::triangular) k = std::max(0.0L, 1 - std::abs(u));
    if (kernel == PoolingKernel::epanechnikov) k = std::max(0.0L, 1 - u * u);
    above += k * values[i];
    below += k;
  }
  return above / below;
}

struct Pairs {
  Numbers keys, values;
  explicit Pairs(std::size_t n) {
    const RandomStream stream(3, RandomUse::examples);
    for (std::size_t i = 0; i < n; ++i) {
      keys.push_back(5 * stream.uniform(2 * i));
      values.push_back(stream.normal(2 * i + 1) - 1);
    }
  }
};

/// The leave-one-out loss as a function of w, and its gradient by the tape.
struct Loss {
  ParameterLayout layout;
  GaussianPooling pooling{layout, "pooling"};
  ParameterValues<double> values{layout, PageSize::small}, gradients{layout, PageSize::small};
  Arena arena;
  CpuContext device{arena};
  Graph<double> graph{device, values, gradients};

  double operator()(double w, const Pairs& pairs, std::size_t begin, std::size_t count) {
    values[pooling.w()][0] = w;
    graph.reset();
    const Variable<double> loss = leave_one_out_loss(graph, pooling, pairs.keys, pairs.values, begin, count);
    const double result = loss.value[0];
    graph.backward(loss);
    return result;
  }
  double gradient() { return gradients[pooling.w()][0]; }
};

}  // namespace

TEST_CASE("two pairs, worked by hand") {
  const Numbers keys{0, 2}, values{1, 5};
  using enum PoolingKernel;
  const double share = std::exp(-2.0) / (1 + std::exp(-2.0));  // of the key 2, at the distance 2, for the query 0
  CHECK(weights_of(gaussian, 1, 0, keys).second[1] == Approx(share).epsilon(1e-14));
  CHECK(predict(gaussian, 1, 0, keys, values) == Approx(1.4768116880884702).epsilon(1e-14));
  CHECK(predict(gaussian, 1, 1, keys, values) == 3);
  CHECK(predict(gaussian, 0, 7, keys, values) == 3);
  CHECK(predict(constant, 1, 0, keys, values) == 3);
  CHECK(predict(boxcar, 1, 0.5, keys, values) == 1);
  CHECK(predict(boxcar, 0.5, 0.5, keys, values) == 3);
  CHECK(predict(triangular, 0.5, 0.5, keys, values) == Approx(2).epsilon(1e-14));  // 0.75 and 0.25
  CHECK(predict(epanechnikov, 0.5, 0.5, keys, values) == Approx(1 + 4 * 0.4375 / 1.375).epsilon(1e-14));
  CHECK(predict(gaussian, 1, 3, {2}, {5}) == 5);
}

TEST_CASE("every kernel gives what its formula gives, and weights that sum to 1") {
  const Pairs pairs(37);
  for (const auto kernel : {PoolingKernel::constant, PoolingKernel::gaussian, PoolingKernel::boxcar,
                            PoolingKernel::triangular, PoolingKernel::epanechnikov})
    for (const double w : {0.25, 1.0, 3.0})
      for (const double query : {0.0, 0.7, 2.5, 4.99}) {
        CAPTURE(static_cast<int>(kernel));
        CAPTURE(w);
        CAPTURE(query);
        const auto [any, weights] = weights_of(kernel, w, query, pairs.keys);
        CHECK(any);
        double sum = 0;
        for (const double weight : weights) sum += weight;
        CHECK(sum == Approx(1).epsilon(1e-13));
        CHECK(pool(weights, pairs.values) ==
              Approx(static_cast<double>(by_formula(kernel, w, query, pairs.keys, pairs.values))).epsilon(1e-12));
      }
}

TEST_CASE("a query far from all keys takes the nearest ones, without NaN") {
  const auto far = [](double w, double query, const Numbers& keys) {
    return weights_of(PoolingKernel::gaussian, w, query, keys).second;
  };
  CHECK(far(1, 1e6, {0, 1, 2}) == Numbers{0, 0, 1});
  CHECK(far(1, -1e6, {0, 1, 2}) == Numbers{1, 0, 0});
  CHECK(far(1, 1e150, {-1e150, 1e150, 1e150}) == Numbers{0, 0.5, 0.5});
  CHECK(far(1e150, 0.5, {0, 1}) == Numbers{0.5, 0.5});
  CHECK(far(1e150, 0.4, {0, 1}) == Numbers{1, 0});
  // The squares of these distances are 1e12 and differ by 2, so that the odds are exp(1); the squares alone have lost
  // four of the digits that are left.
  CHECK(far(1, 1e6, {0, 1e-6})[1] == Approx(1 / (1 + std::exp(-1.0))).epsilon(1e-9));
  const auto [any, weights] = weights_of(PoolingKernel::boxcar, 1, 1e6, {0, 1});
  CHECK_FALSE(any);
  CHECK(weights == Numbers{0, 0});
  CHECK_FALSE(weights_of(PoolingKernel::gaussian, 1, 1, {}).first);
}

TEST_CASE("leave-one-out loss: two pairs by hand, and the mean of squared errors of predictions") {
  Loss loss;
  Pairs two(2);
  two.keys = {0, 1};
  two.values = {2, 5};  // each pair is predicted by the other one
  CHECK(loss(1, two, 0, 2) == Approx(9).epsilon(1e-14));
  const Pairs pairs(9);
  double expected = 0;
  for (std::size_t i = 0; i < 9; ++i) {
    Pairs others = pairs;
    others.keys.erase(others.keys.begin() + static_cast<std::ptrdiff_t>(i));
    others.values.erase(others.values.begin() + static_cast<std::ptrdiff_t>(i));
    const auto predicted = by_formula(PoolingKernel::gaussian, 1.7L, pairs.keys[i], others.keys, others.values);
    expected += std::pow(static_cast<double>(predicted) - pairs.values[i], 2) / 9;
  }
  CHECK(loss(1.7, pairs, 0, 9) == Approx(expected).epsilon(1e-12));
}

TEST_CASE("leave-one-out loss: the gradient is that of finite differences, also when the pairs come in parts") {
  const Pairs pairs(11);
  for (const double w : {0.3, 1.0, 2.7}) {
    Loss whole, parts, other;
    const double loss = whole(w, pairs, 0, 11);
    CHECK(parts(w, pairs, 0, 4) + parts(w, pairs, 4, 7) == Approx(loss).epsilon(1e-13));
    constexpr double kStep = 1e-5;
    const double numeric = (other(w + kStep, pairs, 0, 11) - other(w - kStep, pairs, 0, 11)) / (2 * kStep);
    CHECK(std::abs(numeric) > 1e-3);
    CHECK(whole.gradient() == Approx(numeric).epsilon(1e-8));
    CHECK(parts.gradient() == Approx(whole.gradient()).epsilon(1e-12));
  }
}

TEST_CASE("kernel pooling: wrong sizes are named") {
  Numbers weights(2);
  CHECK_THROWS_WITH_AS(gaussian_scores(1, Numbers{1, 2, 3}, weights), "internal: kernel pooling: 2 elements for 3 keys",
                       Error);
  CHECK_THROWS_AS(pool(Numbers{1}, Numbers{1, 2}), Error);
  Loss loss;
  CHECK_THROWS_AS(loss(1, Pairs(1), 0, 1), Error);
  CHECK_THROWS_AS(loss(1, Pairs(3), 2, 2), Error);
}
