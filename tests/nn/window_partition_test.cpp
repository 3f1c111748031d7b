#include "heed/nn/window_partition.h"

#include <algorithm>
#include <cmath>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <numeric>
#include <string>
#include <utility>

#include "heed/base/error.h"
#include "heed/ops/attention.h"
#include "heed/ops/linear.h"
#include "heed/ops/parts.h"
#include "heed/ops/window_bias.h"
#include "network.h"

using namespace heed;
using nlohmann::json;

namespace {

using Indices = std::vector<std::int32_t>;

/// Reads what torchvision has computed (scripts/reference/make_window_reference.py).
json torchvision_reference() {
  std::ifstream in(std::string(HEED_TEST_DATA) + "/nn/reference/windows.json");
  REQUIRE(in.good());
  return json::parse(in);
}

/// Returns where torchvision's mask puts a place along one side of a grid after the image has been rolled by `shift`:
/// the number of the window, and the number of the region (0, -M), (-M, -s) or (-s, None).
std::pair<int, int> window_and_region(int place, int length, int window, int shift) {
  if (window >= length) return {0, 0};
  const int rolled = (place - shift + length) % length;
  const int region = shift == 0 ? 0 : rolled < length - window ? 0 : rolled < length - shift ? 1 : 2;
  return {rolled / window, region};
}

/// Checks that the windows are exactly the sets of tokens that attend to each other in torchvision, and that each
/// window has its shape and its tokens from left to right and from top to bottom.
void check_partition(GridSize grid, int window, int shift) {
  CAPTURE(grid.rows);
  CAPTURE(grid.columns);
  CAPTURE(window);
  CAPTURE(shift);
  const WindowPartition partition = window_partition(grid, window, shift);
  using Label = std::pair<std::pair<int, int>, std::pair<int, int>>;
  std::map<Label, Indices> expected;
  for (int r = 0; r < grid.rows; ++r)
    for (int c = 0; c < grid.columns; ++c)
      expected[{window_and_region(r, grid.rows, window, shift), window_and_region(c, grid.columns, window, shift)}]
          .push_back(r * grid.columns + c);
  REQUIRE(partition.order.size() == static_cast<std::size_t>(grid.tokens()));
  REQUIRE(partition.windows() == std::ssize(expected));
  CHECK(partition.shapes.size() <= 9);
  auto token = partition.order.begin();
  for (const std::int32_t k : partition.shape_of) {
    const WindowShape& shape = partition.shapes[static_cast<std::size_t>(k)];
    const int r = *token / grid.columns, c = *token % grid.columns;
    const Indices& tokens =
        expected[{window_and_region(r, grid.rows, window, shift), window_and_region(c, grid.columns, window, shift)}];
    REQUIRE(shape.tokens() == std::ssize(tokens));
    CHECK(std::equal(tokens.begin(), tokens.end(), token));
    CHECK(tokens.back() == (r + shape.rows - 1) * grid.columns + c + shape.columns - 1);
    token += shape.tokens();
  }
  for (std::size_t t = 0; t < partition.order.size(); ++t)
    CHECK(partition.inverse[static_cast<std::size_t>(partition.order[t])] == static_cast<std::int32_t>(t));
}

/// The numbers of scripts/reference/make_window_reference.py: element i of the tensor `name`.
Tensor<double> formula(Arena& arena, const json& reference, const std::string& name, const Shape& shape) {
  const auto names = reference.at("tensors").get<std::vector<std::string>>();
  const auto j = std::find(names.begin(), names.end(), name) - names.begin();
  REQUIRE(j < std::ssize(names));
  const Tensor<double> out = arena.tensor<double>(shape);
  for (std::int64_t i = 0; i < out.size(); ++i)
    out[i] = 0.8 * std::sin(1 + 0.7 * static_cast<double>(j) + 0.91 * static_cast<double>(i));
  return out;
}

/// Checks numbers against the integers of the reference, which are the numbers times 1e7.
void check_close(const std::string& what, Tensor<double> actual, const json& expected) {
  INFO(what);
  REQUIRE(actual.size() == static_cast<std::int64_t>(expected.size()));
  double worst = 0;
  for (std::int64_t i = 0; i < actual.size(); ++i)
    worst = std::max(worst, std::abs(actual[i] - expected[static_cast<std::size_t>(i)].get<double>() * 1e-7));
  CHECK(worst < 1e-6);
}

/// Computes one case of the reference: the projections, attention within windows, and the output projection, between a
/// gather into window order and one back.
void check_case(const json& reference, const json& test) {
  const std::int64_t B = reference["sizes"]["B"], C = reference["sizes"]["C"], H = reference["sizes"]["H"];
  const GridSize grid{test["rows"].get<std::int32_t>(), test["columns"].get<std::int32_t>()};
  const int window = test["window"], images = static_cast<int>(B);
  const WindowPartition partition = window_partition(grid, window, test["shift"].get<int>());
  const auto tokens = static_cast<std::size_t>(B * grid.tokens()),
             windows = static_cast<std::size_t>(B * partition.windows());
  Indices into(tokens), back(tokens), offsets(windows + 1), shape_of(windows);
  repeat_order(partition.order, images, into);
  repeat_order(partition.inverse, images, back);
  repeat_windows(partition, images, offsets, shape_of);

  Network<double> net;
  net.begin();
  Graph<double>& graph = *net.graph;
  std::map<std::string, Variable<double>> in;
  for (const auto& [name, shape] : {std::pair<std::string, Shape>{"x", {B * grid.tokens(), C}},
                                    {"qkv/weight", {3 * C, C}},
                                    {"qkv/bias", {3 * C}},
                                    {"output/weight", {C, C}},
                                    {"output/bias", {C}},
                                    {"table", {(2 * window - 1) * (2 * window - 1), H}}})
    in[name] = graph.input(formula(net.arena, reference, name, shape), true);
  const auto x = gather_rows<double>(graph, in["x"], into);
  const auto qkv = linear(graph, x, in["qkv/weight"], in["qkv/bias"]);
  const auto bias = window_bias(graph, in["table"], window, {partition.shapes, shape_of});
  const auto attended = attention<double>(graph, {qkv, 0}, {qkv, C}, {qkv, 2 * C}, C, {offsets}, {offsets},
                                          {static_cast<int>(H)}, {}, bias);
  const auto y = gather_rows<double>(graph, linear(graph, attended, in["output/weight"], in["output/bias"]), back);
  check_close("output", y.value, test.at("output"));

  const Tensor<double> dy = formula(net.arena, reference, "output gradient", y.shape());
  const Variable<double> loss = graph.result({});
  graph.record([y, dy](auto&) {
    for (std::int64_t i = 0; i < dy.size(); ++i) y.gradient.sum()[i] += dy[i];
  });
  graph.backward(loss);
  for (const auto& [name, variable] : in)
    check_close("gradient of " + name, variable.gradient.sum(), test.at("gradients").at(name));
}

}  // namespace

TEST_CASE("window partition: attention within windows as torchvision, forward and back") {
  const json reference = torchvision_reference();
  REQUIRE(reference.at("cases").size() == 10);
  for (const json& test : reference.at("cases")) {
    INFO(test["rows"].get<int>(), " x ", test["columns"].get<int>(), ", M = ", test["window"].get<int>(),
         ", s = ", test["shift"].get<int>());
    check_case(reference, test);
  }
}

TEST_CASE("window partition: a small grid, shifted and not") {
  const WindowPartition plain = window_partition({4, 4}, 2, 0), shifted = window_partition({4, 4}, 2, 1);
  CHECK(plain.order == Indices{0, 1, 4, 5, 2, 3, 6, 7, 8, 9, 12, 13, 10, 11, 14, 15});
  CHECK(plain.shapes == std::vector<WindowShape>{{2, 2}});
  CHECK(plain.shape_of == Indices{0, 0, 0, 0});
  CHECK(shifted.order == Indices{0, 1, 2, 3, 4, 8, 5, 6, 9, 10, 7, 11, 12, 13, 14, 15});
  CHECK(shifted.inverse == Indices{0, 1, 2, 3, 4, 6, 7, 10, 5, 8, 9, 11, 12, 13, 14, 15});
  CHECK(shifted.shapes == std::vector<WindowShape>{{1, 1}, {1, 2}, {2, 1}, {2, 2}});
  CHECK(shifted.shape_of == Indices{0, 1, 0, 2, 3, 2, 0, 1, 0});
}

TEST_CASE("window partition: the windows are the regions of torchvision's mask") {
  for (const int window : {1, 2, 3, 4, 7})
    for (int shift = 0; shift < window; ++shift)
      for (const int rows : {1, window - 1, window, 2 * window, 3 * window, 5 * window})
        for (const int columns : {window, 2 * window, 4 * window})
          if (rows > 0) check_partition({rows, columns}, window, shift);
  CHECK(window_partition({56, 56}, 7, 3).shapes.size() == 9);
  CHECK(window_partition({16, 16}, 4, 2).shapes.size() == 4);
  CHECK(window_partition({7, 7}, 7, 3).windows() == 1);
}

TEST_CASE("window partition: sizes that do not fit are named") {
  CHECK_THROWS_WITH_AS(
      window_partition({16, 7}, 7, 3),
      "a grid of 16 x 7 tokens cannot be divided into windows of 7 x 7 tokens (14 and 21 rows fit, and "
      "so do the other multiples of 7 and all numbers below 7)",
      Error);
  CHECK_THROWS_WITH_AS(
      window_partition({8, 5}, 4, 0),
      "a grid of 8 x 5 tokens cannot be divided into windows of 4 x 4 tokens (4 and 8 columns fit, and "
      "so do the other multiples of 4 and all numbers below 4)",
      Error);
  CHECK_THROWS_WITH_AS(window_partition({8, 8}, 4, 4),
                       "internal: window_partition: a grid of 8 x 8 tokens, windows of 4 x 4, shifted by 4", Error);
  CHECK_THROWS_AS(window_partition({0, 8}, 4, 0), Error);
  CHECK_THROWS_AS(window_partition({8, 8}, 0, 0), Error);
  CHECK_THROWS_AS(window_partition({8, 8}, 4, -1), Error);
}

TEST_CASE("window partition: patch merging in torchvision's order") {
  const json merging = torchvision_reference().at("merging");
  const GridSize grid{merging["rows"].get<std::int32_t>(), merging["columns"].get<std::int32_t>()};
  CHECK(patch_merging_order(grid) == merging.at("order").get<Indices>());
  CHECK(patch_merging_order({2, 2}) == Indices{0, 2, 1, 3});
  for (const GridSize& odd : {GridSize{3, 4}, GridSize{4, 3}, GridSize{0, 2}})
    CHECK_THROWS_AS(patch_merging_order(odd), Error);
  CHECK_THROWS_WITH_AS(
      patch_merging_order({7, 8}),
      "a grid of 7 x 8 tokens cannot be merged in squares of 2 x 2 (choose an image size that gives an "
      "even number of rows and columns)",
      Error);
}

TEST_CASE("window partition: all images of a batch") {
  const WindowPartition partition = window_partition({2, 4}, 2, 1);
  CHECK(partition.order == Indices{0, 4, 1, 2, 5, 6, 3, 7});
  Indices rows(24), offsets(10), shape_of(9);
  repeat_order(partition.order, 3, rows);
  for (std::int32_t i = 0; i < 24; ++i)
    CHECK(rows[static_cast<std::size_t>(i)] == i / 8 * 8 + partition.order[static_cast<std::size_t>(i % 8)]);
  repeat_windows(partition, 3, offsets, shape_of);
  CHECK(offsets == Indices{0, 2, 6, 8, 10, 14, 16, 18, 22, 24});
  CHECK(shape_of == Indices{0, 1, 0, 0, 1, 0, 0, 1, 0});
  Indices none, zero(1);
  repeat_order(partition.order, 0, none);
  repeat_windows(partition, 0, zero, none);
  CHECK(zero == Indices{0});
  CHECK_THROWS_WITH_AS(repeat_order(partition.order, 2, rows),
                       "internal: repeat_order: rows has 24 elements, expected 16", Error);
  CHECK_THROWS_WITH_AS(repeat_windows(partition, 3, shape_of, shape_of),
                       "internal: repeat_windows: offsets has 9 elements, expected 10", Error);
  CHECK_THROWS_WITH_AS(repeat_windows(partition, 3, offsets, offsets),
                       "internal: repeat_windows: shape_of has 10 elements, expected 9", Error);
}
