#include "heed/optim/optimizer.h"

#include <doctest/doctest.h>

#include <cmath>
#include <limits>
#include <vector>

using namespace heed;
using doctest::Approx;

namespace {

/// A small optimisation problem: four parameters w with the initial values `start`, and the gradient 2 w[i] + 0.1 i.
struct Problem {
  Problem() {
    id = layout.add("w", {4}, Initialiser::zeros());
    values = std::make_unique<ParameterValues<float>>(layout);
    gradient = std::make_unique<ParameterValues<float>>(layout);
    for (int i = 0; i < 4; ++i) (*values)[id][i] = start[i];
  }

  void run(const Optimizer& optimizer, int steps, double rate, int threads = 1, double scale = 1) {
    for (int step = 1; step <= steps; ++step) {
      for (int i = 0; i < 4; ++i) (*gradient)[id][i] = 2 * (*values)[id][i] + 0.1F * static_cast<float>(i);
      for (int thread = 0; thread < threads; ++thread)
        optimizer.update(*values, *gradient, slice_of(layout.storage_size(), threads, thread), {rate, step, scale});
    }
  }

  static constexpr float start[4] = {1, -2, 0.5F, 3};
  ParameterLayout layout;
  ParameterId id;
  std::unique_ptr<ParameterValues<float>> values, gradient;
};

/// Computes the parameters after `steps` updates of a Problem from the optimiser's textbook formulas, in double.
std::vector<double> by_formula(const OptimizerSettings& s, int steps, double rate, double scale = 1) {
  std::vector<double> w(Problem::start, Problem::start + 4), m(4), v(4);
  for (int t = 1; t <= steps; ++t)
    for (std::size_t i = 0; i < 4; ++i) {
      double g = scale * (2 * w[i] + 0.1 * static_cast<double>(i));
      if (s.kind == OptimizerKind::adamw)
        w[i] -= rate * s.weight_decay * w[i];
      else
        g += s.weight_decay * w[i];
      if (s.kind == OptimizerKind::sgd) {
        m[i] = s.momentum * m[i] + g;
        w[i] -= rate * m[i];
        continue;
      }
      m[i] = s.beta1 * m[i] + (1 - s.beta1) * g;
      v[i] = s.beta2 * v[i] + (1 - s.beta2) * g * g;
      w[i] -= rate * (m[i] / (1 - std::pow(s.beta1, t))) / (std::sqrt(v[i] / (1 - std::pow(s.beta2, t))) + s.epsilon);
    }
  return w;
}

}  // namespace

TEST_CASE("each optimiser follows its formula") {
  for (const auto& [kind, name] : EnumNames<OptimizerKind>::values)
    for (const double decay : {0.0, 0.1})
      for (const double momentum : {0.0, 0.9}) {
        CAPTURE(name);
        CAPTURE(decay);
        OptimizerSettings settings;
        settings.kind = kind;
        settings.weight_decay = decay;
        settings.momentum = momentum;
        Problem problem;
        NamedParameterValues memory;
        problem.run(Optimizer(settings, problem.layout, memory), 5, 0.01, 1, 0.5);
        const std::vector<double> expected = by_formula(settings, 5, 0.01, 0.5);
        for (int i = 0; i < 4; ++i)
          CHECK((*problem.values)[problem.id][i] == Approx(expected[static_cast<std::size_t>(i)]).epsilon(1e-5));
      }
}

TEST_CASE("slices of several threads give what one gives, and memory goes on where it stood") {
  const OptimizerSettings settings;
  Problem whole, cut;
  NamedParameterValues memory_whole, memory_cut;
  whole.run(Optimizer(settings, whole.layout, memory_whole), 2, 0.1);
  cut.run(Optimizer(settings, cut.layout, memory_cut), 1, 0.1, 3);
  // A new optimiser continues from the state that an earlier optimiser left in `memory_cut`.
  for (int i = 0; i < 4; ++i) (*cut.gradient)[cut.id][i] = 2 * (*cut.values)[cut.id][i] + 0.1F * static_cast<float>(i);
  Optimizer(settings, cut.layout, memory_cut)
      .update(*cut.values, *cut.gradient, {0, cut.layout.storage_size()}, {0.1, 2, 1});
  for (int i = 0; i < 4; ++i) CHECK((*whole.values)[whole.id][i] == (*cut.values)[cut.id][i]);
}

TEST_CASE("an optimiser of doubles keeps their digits") {
  ParameterLayout layout;
  const ParameterId id = layout.add("w", {1}, Initialiser::ones());
  for (const auto kind : {OptimizerKind::adam, OptimizerKind::sgd}) {
    ParameterValues<double> values(layout, PageSize::small), gradient(layout, PageSize::small);
    values[id][0] = 1;
    gradient[id][0] = 3;
    OptimizerSettings settings;
    settings.kind = kind;
    NamedValues<double> memory;
    BasicOptimizer<double>(settings, layout, memory)
        .update(values, gradient, {0, layout.storage_size()}, {1e-10, 1, 1});
    // The first step of Adam has the size of the learning rate.
    CHECK(1 - values[id][0] == Approx(kind == OptimizerKind::sgd ? 3e-10 : 1e-10).epsilon(1e-5));
  }
}

TEST_CASE("an optimiser names the arrays it needs") {
  ParameterLayout layout;
  layout.add("w", {4}, Initialiser::zeros());
  const auto names = [&](const OptimizerSettings& settings) {
    NamedParameterValues memory;
    const Optimizer optimizer(settings, layout, memory);
    std::vector<std::string> out;
    for (const auto& [name, values] : memory) out.push_back(name);
    return out;
  };
  CHECK(names({}) == std::vector<std::string>{"first_moment", "second_moment"});
  CHECK(names({.kind = OptimizerKind::sgd}).empty());
  CHECK(names({.kind = OptimizerKind::sgd, .momentum = 0.9}) == std::vector<std::string>{"velocity"});
}

TEST_CASE("default rates: a tenth of the planned updates, at most the paper's warm-up; the paper's peak and betas") {
  const auto settings = [](OptimizerOptions options, double planned_updates) {
    options.set_default_rates(512, planned_updates);
    return options.resolve();
  };
  OptimizerOptions options;
  CHECK(settings(options, 1e6).schedule.warmup == 4000);
  CHECK(settings(options, 1e6).schedule.peak == Approx(1 / std::sqrt(512.0 * 4000)));
  CHECK(settings(options, 1e6).beta2 == 0.98);
  CHECK(settings(options, std::numeric_limits<double>::infinity()).schedule.warmup == 4000);
  CHECK(settings(options, 30000).schedule.warmup == 3000);
  CHECK(settings(options, 30000).schedule.peak == Approx(1 / std::sqrt(512.0 * 4000)));
  CHECK(settings(options, 1239).schedule.warmup == 123);
  CHECK(settings(options, 1239).schedule.peak == Approx(1 / std::sqrt(512.0 * 4000)));
  CHECK(settings(options, 250).schedule.warmup == 25);
  CHECK(settings(options, 250).schedule.peak == Approx(0.5 / std::sqrt(512.0 * 4000)));
  CHECK(settings(options, 9).schedule.warmup == 0);
  CHECK(settings(options, 9).schedule.peak == Approx(0.1 / std::sqrt(512.0 * 4000)));
  options.lr_warmup = 10000;
  CHECK(settings(options, 1e6).schedule.peak == Approx(1 / std::sqrt(512.0 * 10000)));
  options.lr_warmup.reset();
  options.optimizer = OptimizerKind::sgd;
  CHECK(settings(options, 20000).schedule.peak == 0.1);
}

TEST_CASE("what the user says is no default") {
  OptimizerOptions options;
  options.lr_schedule = ScheduleKind::constant;
  options.set_default_rates(512, 20000);
  CHECK(options.resolve().schedule.warmup == 0);
  CHECK(options.resolve().schedule.peak == Approx(0.1 / std::sqrt(512.0 * 4000)));
  options.learn_rate = 0.005;
  options.lr_warmup = 77;
  options.optimizer_params = {0.8, 0.9, 1e-8};
  options.set_default_rates(512, 20000);
  CHECK(options.resolve().schedule.peak == 0.005);
  CHECK(options.resolve().schedule.warmup == 77);
  CHECK(options.resolve().beta1 == 0.8);
  CHECK(options.resolve().epsilon == 1e-8);
}

TEST_CASE("impossible optimiser parameters are refused") {
  OptimizerOptions options;
  options.optimizer_params = {0.9, 0.98, 1e-9, 1};
  CHECK_THROWS_WITH_AS(options.validate(), "--optimizer-params: adam takes three values: beta1 beta2 epsilon",
                       UsageError);
  options.optimizer_params = {1};
  CHECK_THROWS_WITH_AS(options.validate(), "--optimizer-params: beta1 and beta2 must be at least 0 and below 1",
                       UsageError);
  options.optimizer_params = {0.9, 0.98, 0};
  CHECK_THROWS_WITH_AS(options.validate(), "--optimizer-params: epsilon must be above 0", UsageError);
  options.optimizer_params = {0.9, 0.98, 1e-46};
  CHECK_THROWS_WITH_AS(options.validate(),
                       "--optimizer-params: epsilon must be at least 1e-45, because float32 has no smaller numbers",
                       UsageError);
  options.optimizer_params = {0.9, 0.98, 1e-45};
  CHECK_NOTHROW(options.validate());
  options.optimizer = OptimizerKind::sgd;
  options.optimizer_params = {0.9, 0.98};
  CHECK_THROWS_WITH_AS(options.validate(), "--optimizer-params: sgd takes one value: momentum", UsageError);
  options.optimizer_params = {1};
  CHECK_THROWS_WITH_AS(options.validate(), "--optimizer-params: the momentum must be at least 0 and below 1",
                       UsageError);
  options.optimizer_params = {0.99};
  CHECK_NOTHROW(options.validate());
}

TEST_CASE("smoothing starts fast and settles at its rate") {
  CHECK(smoothing_decay(1e-4, 1) == Approx(2.0 / 11));
  CHECK(smoothing_decay(1e-4, 100) == Approx(101.0 / 110));
  CHECK(smoothing_decay(1e-4, 10000000) == Approx(1 - 1e-4));
}
