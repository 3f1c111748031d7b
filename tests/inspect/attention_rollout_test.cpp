#include "heed/inspect/attention_rollout.h"

#include <doctest/doctest.h>

#include "heed/base/error.h"

using namespace heed;

namespace {

void check_equal(const std::vector<float>& got, const std::vector<double>& expected) {
  REQUIRE(got.size() == expected.size());
  for (std::size_t i = 0; i < got.size(); ++i) CHECK(got[i] == doctest::Approx(expected[i]).epsilon(1e-6));
}

}  // namespace

TEST_CASE("attention rollout of two layers equals the product computed by hand") {
  AttentionRollout rollout(2);
  check_equal(rollout.weights(), {1, 0, 0, 1});
  // 0.5 A + 0.5 I = [0.6 0.4; 0.25 0.75]
  rollout.add(std::vector<float>{0.2F, 0.8F, 0.5F, 0.5F});
  check_equal(rollout.weights(), {0.6, 0.4, 0.25, 0.75});
  // [0.5 0.5; 0.1 0.9] times the matrix of the first layer
  rollout.add(std::vector<float>{0.F, 1.F, 0.2F, 0.8F});
  check_equal(rollout.weights(), {0.425, 0.575, 0.285, 0.715});
}

TEST_CASE("the rows of a rollout sum to 1, even if those of the weights do not") {
  AttentionRollout rollout(2);
  // The row [0.5 0] + [1 0] = [1.5 0] becomes [1 0], and the row [0.25 0.25] + [0 1] = [0.25 1.25] becomes
  // [1/6 5/6].
  rollout.add(std::vector<float>{0.5F, 0.F, 0.25F, 0.25F});
  check_equal(rollout.weights(), {1, 0, 1.0 / 6, 5.0 / 6});
}

TEST_CASE("a rollout refuses a layer with another number of tokens") {
  AttentionRollout rollout(3);
  CHECK_THROWS_WITH_AS(rollout.add(std::vector<float>(4)), "attention rollout: 4 weights for 3 tokens", Error);
}
