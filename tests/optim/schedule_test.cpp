#include "heed/optim/schedule.h"

#include <doctest/doctest.h>

#include <cmath>
#include <numbers>

using namespace heed;
using doctest::Approx;

TEST_CASE("every schedule warms up in a straight line to its peak") {
  for (const auto& [kind, name] : EnumNames<ScheduleKind>::values) {
    const Schedule schedule{kind, 0.5, 100};
    CAPTURE(name);
    CHECK(schedule.rate(1, 0) == Approx(0.005));
    CHECK(schedule.rate(50, 49.0 / 1000) == Approx(0.25));
    CHECK(schedule.rate(100, 99.0 / 1000) == Approx(0.5).epsilon(0.01));
  }
}

TEST_CASE("inverse-sqrt is the paper's rate where the peak is (width * warmup)^-0.5") {
  const double width = 512, warmup = 4000;
  const Schedule schedule{ScheduleKind::inverse_sqrt, 1 / std::sqrt(width * warmup), 4000};
  for (const std::int64_t step : {1, 100, 3999, 4000, 4001, 100000}) {
    const auto t = static_cast<double>(step);
    CHECK(schedule.rate(step, 0.5) ==
          Approx(std::pow(width, -0.5) * std::min(std::pow(t, -0.5), t * std::pow(warmup, -1.5))));
  }
}

TEST_CASE("without warm-up the first update has the peak's rate") {
  for (const auto& [kind, name] : EnumNames<ScheduleKind>::values)
    CHECK(Schedule{kind, 0.1, 0}.rate(1, 0) == Approx(0.1));
}

TEST_CASE("linear and cosine go from the end of the warm-up down to zero at the end of training") {
  const std::int64_t total = 1000, warmup = 200;
  const Schedule linear{ScheduleKind::linear, 2, warmup}, cosine{ScheduleKind::cosine, 2, warmup};
  for (const std::int64_t step : {201, 300, 600, 1000}) {
    // `done` is the number of updates before this update, which PyTorch's LambdaLR calls the step.
    const double done = static_cast<double>(step - 1), progress = done / static_cast<double>(total);
    const double rest = (done - warmup) / (total - warmup);
    CHECK(linear.rate(step, progress) == Approx(2 * (1 - rest)));
    CHECK(cosine.rate(step, progress) == Approx(1 + std::cos(std::numbers::pi * rest)));
  }
  CHECK(linear.rate(1001, 1) == 0);
  CHECK(cosine.rate(1001, 1) == Approx(0));
}

TEST_CASE("a training that ends with its warm-up ends at the peak") {
  for (const auto& [kind, name] : EnumNames<ScheduleKind>::values) {
    CAPTURE(name);
    CHECK(Schedule{kind, 0.5, 5}.rate(5, 4.0 / 5) == Approx(0.5));
  }
}

TEST_CASE("constant stays") {
  CHECK(Schedule{ScheduleKind::constant, 0.005, 0}.rate(123456, 0.9) == 0.005);
}
