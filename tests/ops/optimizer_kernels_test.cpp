#include "heed/ops/optimizer_kernels.h"

#include <doctest/doctest.h>

#include <cmath>
#include <limits>
#include <vector>

#include "heed/base/error.h"
#include "heed/base/random.h"
#include "reference.h"

using namespace heed;

namespace {

template <class T>
std::vector<T> normal(std::size_t n, std::uint64_t seed) {
  const RandomStream stream(seed, RandomUse::sampling);
  std::vector<T> out(n);
  for (std::size_t i = 0; i < n; ++i) out[i] = static_cast<T>(stream.normal(i));
  return out;
}

/// Adam and AdamW for a single parameter w, with the formulas of the papers.
struct ScalarAdam {
  double w, m = 0, v = 0;
  void update(double g, const AdamUpdate& a) {
    g *= a.gradient_scale;
    if (a.decoupled)
      w -= a.learning_rate * a.weight_decay * w;
    else
      g += a.weight_decay * w;
    m = a.beta1 * m + (1 - a.beta1) * g;
    v = a.beta2 * v + (1 - a.beta2) * g * g;
    const double m_hat = m / (1 - std::pow(a.beta1, a.step)), v_hat = v / (1 - std::pow(a.beta2, a.step));
    w -= a.learning_rate * m_hat / (std::sqrt(v_hat) + a.epsilon);
  }
};

template <class T>
void check_adam(double tolerance) {
  for (const bool decoupled : {false, true}) {
    const std::size_t n = 37;
    auto w = normal<T>(n, 1);
    std::vector<T> m(n), v(n);
    std::vector<ScalarAdam> expected;
    for (const T x : w) expected.push_back({x});
    for (int step = 1; step <= 3; ++step) {
      const auto g = normal<T>(n, static_cast<std::uint64_t>(10 + step));
      const AdamUpdate update{
          .learning_rate = 0.01, .weight_decay = 0.1, .decoupled = decoupled, .step = step, .gradient_scale = 0.5};
      adam_update(std::span(w), g, m, v, update);
      for (std::size_t i = 0; i < n; ++i) {
        expected[i].update(g[i], update);
        CHECK(std::abs(w[i] - expected[i].w) < tolerance);
        CHECK(std::abs(m[i] - expected[i].m) < tolerance);
      }
    }
  }
}

}  // namespace

TEST_CASE("adam_update is Adam, and AdamW where decay is decoupled, on every instruction set") {
  check_adam<float>(1e-6);
  check_adam<double>(1e-14);
}

TEST_CASE("adam_update: the result does not depend on where the array is cut; zeros stay zeros") {
  const std::size_t n = 101;
  const auto g = normal<float>(n, 2);
  auto whole = normal<float>(n, 1), parts = whole;
  std::vector<float> m1(n), v1(n), m2(n), v2(n);
  const AdamUpdate update{.learning_rate = 0.01, .weight_decay = 0.1};
  adam_update(std::span(whole), g, m1, v1, update);
  for (const auto& [begin, end] : {std::pair<std::size_t, std::size_t>{0, 13}, {13, 14}, {14, 101}}) {
    const auto part = [from = begin, size = end - begin](auto& x) { return std::span(x).subspan(from, size); };
    adam_update(part(parts), part(g), part(m2), part(v2), update);
  }
  CHECK(whole == parts);
  CHECK(v1 == v2);
  std::vector<float> zero(20), m(20), v(20);
  adam_update(std::span(zero), std::vector<float>(20), m, v, update);
  CHECK(zero == std::vector<float>(20));
}

TEST_CASE("sgd_update with and without momentum") {
  std::vector<double> w = {1, 2, 3}, u(3);
  const std::vector<double> g = {0.5, -1, 2};
  sgd_update(std::span(w), g, {}, {.learning_rate = 0.1, .gradient_scale = 2});
  CHECK(w[0] == doctest::Approx(0.9));
  CHECK(w[1] == doctest::Approx(2.2));
  const SgdUpdate heavy{.learning_rate = 0.1, .momentum = 0.9, .weight_decay = 0.01};
  w = {1, 2, 3};
  sgd_update(std::span(w), g, u, heavy);
  CHECK(u[0] == doctest::Approx(0.51));
  CHECK(w[0] == doctest::Approx(1 - 0.051));
  sgd_update(std::span(w), g, u, heavy);
  CHECK(u[0] == doctest::Approx(0.9 * 0.51 + 0.5 + 0.01 * (1 - 0.051)));
}

TEST_CASE("squared_norm: exact to double, the same bits on every instruction set") {
  for (const std::size_t n : {0u, 1u, 31u, 32u, 33u, 5000u}) {
    const auto x = normal<float>(n, 4);
    double partial[32] = {}, expected = 0;  // the 32 partial sums that squared_norm() documents
    for (std::size_t i = 0; i < n; ++i) partial[i % 32] += static_cast<double>(x[i]) * static_cast<double>(x[i]);
    for (const double sum : partial) expected += sum;
    CHECK(squared_norm(std::span<const float>(x)) == expected);
  }
  CHECK(squared_norm(std::span<const double>(std::vector<double>{3, 4})) == 25);
}

TEST_CASE("add_to, scale_by, move_average, all_finite") {
  std::vector<float> y = normal<float>(21, 1), x = normal<float>(21, 2);
  const std::vector<float> y0 = y;
  add_to(std::span(y), x);
  CHECK(y[20] == y0[20] + x[20]);
  scale_by(std::span(y), 2);
  CHECK(y[0] == 2 * (y0[0] + x[0]));
  move_average(std::span(x), y0, 0.75);
  CHECK(x[19] == doctest::Approx(0.75 * normal<float>(21, 2)[19] + 0.25 * y0[19]));
  for (const std::size_t at : {0u, 20u})
    for (const float bad : {std::numeric_limits<float>::infinity(), -std::numeric_limits<float>::infinity(),
                            std::numeric_limits<float>::quiet_NaN()}) {
      std::vector<float> z(21, std::numeric_limits<float>::max());
      CHECK(all_finite(std::span<const float>(z)));
      z[at] = bad;
      CHECK_FALSE(all_finite(std::span<const float>(z)));
    }
}

TEST_CASE("optimizer kernels: unequal arrays are an error") {
  std::vector<float> a(3), b(4);
  CHECK_THROWS_WITH_AS(add_to(std::span(a), b), "internal: add_to: arrays of 3 and 4 elements", Error);
  CHECK_THROWS_AS(adam_update(std::span(a), a, a, b, {}), Error);
}

TEST_CASE("adam_update: three steps as PyTorch's Adam and AdamW") {
  const nlohmann::json reference = torch_reference("adam");
  for (const auto& data : reference.at("cases")) {
    INFO(data["name"].get<std::string>());
    const auto& options = data["options"];
    auto w = data["inputs"]["value"]["data"].get<std::vector<double>>();
    std::vector<double> m(w.size()), v(w.size());
    for (std::size_t step = 0; step < data["steps"].size(); ++step) {
      adam_update(std::span(w), options["gradients"][step]["data"].get<std::vector<double>>(), m, v,
                  {.learning_rate = options["learning_rate"],
                   .weight_decay = options["weight_decay"],
                   .decoupled = options["decoupled"],
                   .step = static_cast<std::int64_t>(step) + 1});
      for (std::size_t i = 0; i < w.size(); ++i)
        CHECK(w[i] == doctest::Approx(data["steps"][step]["data"][i].get<double>()).epsilon(1e-8));
    }
  }
}
