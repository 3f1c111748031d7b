#include "heed/ops/heads.h"

#include "heed/base/error.h"
#include "heed/ops/arithmetic.h"
#include "op_test.h"
#include "training.h"

using namespace heed;

namespace {

/// Returns the numbers 0, 1, 2, ... as a tensor of this shape.
Variable<float> counted(Training<float>& t, const Shape& shape) {
  const Variable<float> x = t.normal(shape);
  for (std::int64_t i = 0; i < x.value.size(); ++i) x.value[i] = static_cast<float>(i);
  return x;
}

std::vector<float> numbers(const Variable<float>& x) {
  return {x.value.span().begin(), x.value.span().end()};
}

}  // namespace

TEST_CASE("heads: gradients of all rearrangements") {
  using Inputs = std::vector<Variable<double>>;
  require_gradients({{2, 3, 4}}, [](Graph<double>& graph, Inputs& in) {
    const auto y = reshape(graph, in[0], {6, 4});
    return multiply(graph, y, y);
  });
  require_gradients({{2, 3, 4}}, [](Graph<double>& graph, Inputs& in) { return split_heads(graph, in[0], 2); });
  require_gradients({{6, 2, 4}}, [](Graph<double>& graph, Inputs& in) { return merge_heads(graph, in[0], 3); });
  require_gradients({{6, 2, 4}}, [](Graph<double>& graph, Inputs& in) { return mean_over_heads(graph, in[0], 3); });
  require_gradients({{2, 3, 4}, {4}}, [](Graph<double>& graph, Inputs& in) { return append_row(graph, in[0], in[1]); });
  // Two ops add to the gradient of `split`.
  require_gradients({{2, 3, 4}}, [](Graph<double>& graph, Inputs& in) {
    const auto twice = append_row(graph, append_row(graph, in[0], {}), {});                  // [2, 5, 4]
    const auto split = split_heads(graph, twice, 4), merged = merge_heads(graph, split, 2);  // [8, 5, 1], [4, 5, 2]
    return add(graph, mean_over_heads(graph, merged, 2), reshape(graph, mean_over_heads(graph, split, 2), {2, 5, 2}));
  });
}

TEST_CASE("heads: where each number goes") {
  Training<float> t;
  const auto x = counted(t, {1, 2, 4});
  const auto split = split_heads(t.graph, x, 2);
  CHECK(split.shape() == Shape{2, 2, 2});
  CHECK(numbers(split) == std::vector<float>{0, 1, 4, 5, 2, 3, 6, 7});
  const auto merged = merge_heads(t.graph, split, 2);
  CHECK(merged.shape() == x.shape());
  CHECK(numbers(merged) == numbers(x));
  CHECK(numbers(mean_over_heads(t.graph, split, 2)) == std::vector<float>{1, 2, 5, 6});
  const auto longer = append_row(t.graph, reshape(t.graph, x, {2, 1, 4}), counted(t, {4}));
  CHECK(longer.shape() == Shape{2, 2, 4});
  CHECK(numbers(longer) == std::vector<float>{0, 1, 2, 3, 0, 1, 2, 3, 4, 5, 6, 7, 0, 1, 2, 3});
  CHECK(numbers(append_row(t.graph, x, {})) == std::vector<float>{0, 1, 2, 3, 4, 5, 6, 7, 0, 0, 0, 0});
}

TEST_CASE("heads: wrong arguments are named") {
  Training<float> t;
  const auto x = t.normal({2, 3, 4}), flat = t.normal({6, 4});
  CHECK_THROWS_WITH_AS(split_heads(t.graph, x, 3),
                       "internal: split_heads: 3 heads do not divide dimension 2 of x, whose shape is [2, 3, 4]",
                       Error);
  CHECK_THROWS_WITH_AS(merge_heads(t.graph, x, 0),
                       "internal: merge_heads: 0 heads do not divide dimension 0 of x, whose shape is [2, 3, 4]",
                       Error);
  CHECK_THROWS_WITH_AS(mean_over_heads(t.graph, flat, 2),
                       "internal: mean_over_heads: x has shape [6, 4], expected 3 dimensions", Error);
  CHECK_THROWS_WITH_AS(append_row(t.graph, x, t.normal({3})), "internal: append_row: row has shape [3], expected [4]",
                       Error);
  CHECK_THROWS_WITH_AS(reshape(t.graph, x, {5, 5}),
                       "internal: reshape: x has shape [2, 3, 4], which has another size than [5, 5]", Error);
}
