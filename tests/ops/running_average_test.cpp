#include "heed/ops/running_average.h"

#include "heed/base/error.h"
#include "op_test.h"
#include "training.h"

using namespace heed;

namespace {

/// Sequences of 4, 0, 1 and 6 tokens.
const std::vector<std::int32_t> kAverageOffsets = {0, 4, 4, 5, 11};
constexpr std::int64_t kAverageTokens = 11,
                       kAverageWidth = 19;  // a width with vectors and single elements on every instruction set

using Inputs = std::vector<Variable<double>>;

}  // namespace

TEST_CASE("running_mean, simple_recurrence: gradients in sequences of several lengths") {
  require_gradients({{kAverageTokens, 5}},
                    [](Graph<double>& graph, Inputs& in) { return running_mean(graph, in[0], {kAverageOffsets}); });
  require_gradients({{kAverageTokens, 10}}, [](Graph<double>& graph, Inputs& in) {
    return simple_recurrence(graph, in[0], {kAverageOffsets});
  });
}

TEST_CASE("running_mean: the mean of a position and of those before it") {
  Training<float> t;
  const auto x = t.normal({kAverageTokens, kAverageWidth});
  const auto y = running_mean(t.graph, x, {kAverageOffsets});
  for (std::size_t s = 0; s + 1 < kAverageOffsets.size(); ++s)
    for (std::int64_t c = 0; c < kAverageWidth; ++c) {
      double sum = 0;
      for (std::int64_t row = kAverageOffsets[s]; row < kAverageOffsets[s + 1]; ++row) {
        sum += x.value.row(row)[c];
        CHECK(y.value.row(row)[c] ==
              doctest::Approx(sum / static_cast<double>(row - kAverageOffsets[s] + 1)).epsilon(1e-5).scale(1));
      }
    }
  CHECK_THROWS_WITH_AS(running_mean(t.graph, t.normal({10, 3}), {kAverageOffsets}),
                       "internal: running_mean: x has shape [10, 3], expected [11, 3]", Error);
}

TEST_CASE("simple_recurrence: the formula of Kim et al. 2019") {
  Training<float> t;
  const auto gates = t.normal({kAverageTokens, 2 * kAverageWidth});
  const auto y = simple_recurrence(t.graph, gates, {kAverageOffsets});
  int cut = 0;
  for (std::size_t s = 0; s + 1 < kAverageOffsets.size(); ++s)
    for (std::int64_t c = 0; c < kAverageWidth; ++c) {
      double state = 0;
      for (std::int64_t row = kAverageOffsets[s]; row < kAverageOffsets[s + 1]; ++row) {
        const double x = gates.value.row(row)[c], forget = 1 / (1 + std::exp(-gates.value.row(row)[kAverageWidth + c]));
        state = forget * state + (1 - forget) * x;
        cut += state < 0;
        CHECK(y.value.row(row)[c] == doctest::Approx(std::max(0.0, state)).epsilon(1e-5).scale(1));
      }
    }
  CHECK(cut > 20);
  CHECK_THROWS_WITH_AS(simple_recurrence(t.graph, t.normal({11, 5}), {kAverageOffsets}),
                       "internal: simple_recurrence: gates has shape [11, 5], expected [11, 4]", Error);
}

TEST_CASE("running_mean, simple_recurrence: a step gives the bits of the whole sequence, also from a row before") {
  Training<float> t;
  const std::vector<std::int32_t> offsets = {0, 6};
  const auto x = t.normal({6, kAverageWidth}), gates = t.normal({6, 2 * kAverageWidth});
  const auto mean = running_mean(t.graph, x, {offsets}), recurrent = simple_recurrence(t.graph, gates, {offsets});
  const auto state = [&] { return t.arena.tensor<float>({6, kAverageWidth}); };
  const Tensor<float> means = state(), states = state(), y = state(), z = state();
  // Positions 1 and 2 in steps of their own, the others in one step, in which each row continues the row before.
  for (const auto& [begin, end] : {std::pair{0, 1}, {1, 2}, {2, 6}}) {
    std::vector<StateStep<float>> of_means, of_states;
    for (int i = begin; i < end; ++i) {
      of_means.push_back({i == 0 ? nullptr : means.row(i - 1), means.row(i), i + 1});
      of_states.push_back({i == 0 ? nullptr : states.row(i - 1), states.row(i), i + 1});
    }
    running_mean_step<float>(t.device, x.value.row_block(begin, end - begin), of_means,
                             y.row_block(begin, end - begin));
    simple_recurrence_step<float>(t.device, gates.value.row_block(begin, end - begin), of_states,
                                  z.row_block(begin, end - begin));
  }
  CHECK(largest_difference(y, mean.value) == 0);
  CHECK(largest_difference(z, recurrent.value) == 0);
}
