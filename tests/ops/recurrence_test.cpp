#include "heed/ops/recurrence.h"

#include "heed/base/error.h"
#include "heed/base/thread_team.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <string>
#include <utility>
#include <vector>

#include "heed/ops/linear.h"
#include "op_test.h"
#include "training.h"

using namespace heed;

namespace {

constexpr RecurrentCell kCells[] = {RecurrentCell::gru, RecurrentCell::lstm};
constexpr Direction kDirections[] = {Direction::forward, Direction::backward, Direction::both};

/// Sequences of 3, 0, 5, 1 and 3 tokens, which are neither sorted nor all different.
const std::vector<std::int32_t> kOffsets = {0, 3, 3, 8, 9, 12};
constexpr std::int64_t kSequences = 5, kTokens = 12;

/// The inputs of a recurrent layer with random numbers, for sequences whose offsets are `offsets`.
template <class T>
struct Layer {
  Layer(Training<T>& t, RecurrentCell kind, Direction ways, std::int64_t d, std::vector<std::int32_t> at)
      : cell(kind), direction(ways), width(d), gates(gate_count(kind) * d), offsets(std::move(at)) {
    const std::int64_t w = direction_count(ways), sequences = packed().sequences();
    input = t.normal({packed().tokens(), w * gates});
    context = t.normal({sequences, w * gates});
    weight = t.normal({w * gates, width});
    for (T& x : weight.value.span()) x /= static_cast<T>(4);
    bias = t.normal({w * gates});
    first = {t.normal({sequences, w * width}), t.normal({sequences, w * width})};
  }

  PackedOffsets packed() const { return {offsets}; }
  RecurrenceResult<T> run(Graph<T>& graph) const {
    return recurrence(graph, cell, direction, input, context, weight, bias, first, packed());
  }

  RecurrentCell cell;
  Direction direction;
  std::int64_t width, gates;
  std::vector<std::int32_t> offsets;
  Variable<T> input, context, weight, bias;
  RecurrentState<T> first;
};

template <class T>
std::vector<T> numbers(Tensor<T> x) {
  return {x.data(), x.data() + x.size()};
}

/// Returns all numbers of a result, one tensor after the other.
template <class T>
std::vector<T> numbers(const RecurrenceResult<T>& x) {
  std::vector<T> out;
  for (const auto& part : {x.hidden, x.last.hidden, x.last.cell})
    if (part) out.insert(out.end(), part.value.data(), part.value.data() + part.value.size());
  return out;
}

/// Calls body(graph) with a graph for inference in each precision.
template <class Body>
void in_each_precision(Arena& arena, ThreadTeam* team, Body body) {
  for (const Precision precision : {Precision::float32, Precision::bfloat16, Precision::int8}) {
    CAPTURE(static_cast<int>(precision));
    CpuContext device{arena, precision, team};
    ParameterLayout layout;
    ParameterValues<float> none(layout);
    Graph<float> graph(device, none);
    body(graph);
  }
}

}  // namespace

TEST_CASE("recurrence: the tokens in the order of the steps") {
  Arena arena;
  const auto tokens = [&](std::vector<std::int32_t> offsets, bool backward) {
    const TimeOrder order = time_order(arena, {offsets}, backward);
    std::string text;
    for (std::int64_t t = 0; t < order.steps; ++t, text += "/ ")
      for (std::int32_t i = order.begins[t]; i < order.begins[t + 1]; ++i)
        text += std::to_string(order.tokens[i]) + " ";
    return text;
  };
  CHECK(tokens({0, 2, 5, 6}, false) == "2 0 5 / 3 1 / 4 / ");
  CHECK(tokens({0, 2, 5, 6}, true) == "4 1 5 / 3 0 / 2 / ");
  CHECK(tokens(kOffsets, false) == "3 0 9 8 / 4 1 10 / 5 2 11 / 6 / 7 / ");
  CHECK(tokens({0, 0}, false).empty());
  CHECK(tokens({}, false).empty());
}

TEST_CASE("recurrence: gradients of all results, each direction, sequences of any length and without tokens") {
  const PackedOffsets packed{kOffsets};
  for (const RecurrentCell cell : kCells)
    for (const Direction direction : kDirections) {
      const std::int64_t width = 3, w = direction_count(direction), gates = w * gate_count(cell) * width;
      CAPTURE(static_cast<int>(cell));
      CAPTURE(static_cast<int>(direction));
      const std::vector<Shape> shapes = {{kTokens, gates}, {kSequences, gates},     {gates, width},
                                         {gates},          {kSequences, w * width}, {kSequences, w * width}};
      for (int result = 0; result < (cell == RecurrentCell::lstm ? 3 : 2); ++result) {
        CAPTURE(result);
        require_gradients(shapes, [&](Graph<double>& graph, std::vector<Variable<double>>& in) {
          const auto out =
              recurrence<double>(graph, cell, direction, in[0], in[1], in[2], in[3], {in[4], in[5]}, packed);
          return std::array{out.hidden, out.last.hidden, out.last.cell}[static_cast<std::size_t>(result)];
        });
      }
      // Without context, bias and first states; the second layer adds to the gradients of the input and of the weight,
      // and to those of both kinds of results of the first one.
      require_gradients(
          {{kTokens, gates}, {gates, width}}, [&](Graph<double>& graph, std::vector<Variable<double>>& in) {
            const auto once = recurrence<double>(graph, cell, direction, in[0], {}, in[1], {}, {}, packed);
            const auto twice = recurrence<double>(graph, cell, direction, in[0], {}, in[1], {}, once.last, packed);
            return linear(graph, twice.hidden, once.hidden, {});
          });
    }
}

TEST_CASE("recurrence: both directions are the forward and the backward direction, in training and inference") {
  for (const RecurrentCell cell : kCells) {
    Training<double> t;
    const Layer<double> both(t, cell, Direction::both, 5, kOffsets);
    ParameterLayout layout;
    ParameterValues<double> none(layout);
    Graph<double> inference(t.device, none);
    for (Graph<double>* const graph : {&t.graph, &inference}) {
      const auto out = both.run(*graph);
      for (const Direction direction : {Direction::forward, Direction::backward}) {
        const std::int64_t way = direction == Direction::backward;
        // Returns a copy of the columns of one of the two ways.
        const auto half = [&](const Variable<double>& x) {
          const std::int64_t columns = x.value.columns() / 2;
          const auto part = t.arena.tensor<double>({x.value.rows(), columns});
          for (std::int64_t r = 0; r < x.value.rows(); ++r)
            std::copy_n(x.value.row(r) + way * columns, columns, part.row(r));
          return graph->input(part);
        };
        const std::int64_t gates = both.gates;
        const auto weight = graph->input(both.weight.value.row_block(way * gates, gates));
        const auto bias = graph->input(Tensor<double>(both.bias.value.data() + way * gates, {gates}));
        const auto alone = recurrence<double>(*graph, cell, direction, half(both.input), half(both.context), weight,
                                              bias, {half(both.first.hidden), half(both.first.cell)}, both.packed());
        CHECK(numbers(alone.hidden.value) == numbers(half(out.hidden).value));
        CHECK(numbers(alone.last.hidden.value) == numbers(half(out.last.hidden).value));
        if (alone.last.cell) CHECK(numbers(alone.last.cell.value) == numbers(half(out.last.cell).value));
      }
    }
  }
}

TEST_CASE("recurrence: in inference a sequence has the same bits whatever the other sequences are") {
  for (const RecurrentCell cell : kCells)
    for (const Direction direction : kDirections) {
      Training<float> t;
      ThreadTeam team(2);
      const Layer<float> layer(t, cell, direction, 37, {0, 9, 10, 10, 33, 41});
      const std::int64_t columns = direction_count(direction) * layer.width;
      for (ThreadTeam* const threads : {static_cast<ThreadTeam*>(nullptr), &team})
        in_each_precision(t.arena, threads, [&](Graph<float>& graph) {
          const auto all = layer.run(graph);
          for (int b = 0; b < layer.packed().sequences(); ++b) {
            const int begin = layer.packed().begin(b), length = layer.packed().length(b);
            const auto rows = [&](const Variable<float>& x, int at, int count) {
              return graph.input(x.value.row_block(at, count));
            };
            const std::vector<std::int32_t> offsets = {0, length};
            const auto alone = recurrence<float>(
                graph, cell, direction, rows(layer.input, begin, length), rows(layer.context, b, 1), layer.weight,
                layer.bias, {rows(layer.first.hidden, b, 1), rows(layer.first.cell, b, 1)}, {offsets});
            CHECK(std::equal(alone.hidden.value.data(), alone.hidden.value.data() + length * columns,
                             all.hidden.value.row(begin)));
            CHECK(numbers(alone.last.hidden.value) == numbers(all.last.hidden.value.row_block(b, 1)));
            if (alone.last.cell) CHECK(numbers(alone.last.cell.value) == numbers(all.last.cell.value.row_block(b, 1)));
          }
        });
    }
}

TEST_CASE("recurrence: in inference the steps of a linear layer and a cell give the same bits, in every precision") {
  for (const RecurrentCell cell : kCells) {
    Training<float> t;
    const Layer<float> layer(t, cell, Direction::forward, 37, {0, 4, 8, 12});
    in_each_precision(t.arena, nullptr, [&](Graph<float>& graph) {
      const auto whole = layer.run(graph);
      RecurrentState<float> state = layer.first;
      for (int step = 0; step < 4; ++step) {
        const auto input = graph.input(t.arena.tensor<float>({3, layer.gates}));
        for (int b = 0; b < 3; ++b) std::copy_n(layer.input.value.row(4 * b + step), layer.gates, input.value.row(b));
        state = recurrent_cell(graph, cell, input, layer.context, linear(graph, state.hidden, layer.weight, {}),
                               layer.bias, state);
        for (int b = 0; b < 3; ++b)
          CHECK(std::equal(state.hidden.value.row(b), state.hidden.value.row(b) + layer.width,
                           whole.hidden.value.row(4 * b + step)));
      }
      CHECK(numbers(state.hidden.value) == numbers(whole.last.hidden.value));
      if (state.cell) CHECK(numbers(state.cell.value) == numbers(whole.last.cell.value));
    });
  }
}

namespace {

/// Returns the results and the gradients of a layer in training with products of the given precision.
std::vector<float> train(RecurrentCell cell, Precision precision, bool with_first) {
  Training<float> t;
  t.device.precision = precision;
  Layer<float> layer(t, cell, Direction::both, 37, {0, 9, 10, 10, 33, 41});
  if (!with_first) layer.first = {};
  const auto out = layer.run(t.graph);
  const auto dy = t.normal(out.hidden.shape()), dlast = t.normal(out.last.hidden.shape());
  std::vector<float> all = numbers(out);
  t.graph.record([out, dlast](auto&) {
    std::copy_n(dlast.value.data(), dlast.value.size(), out.last.hidden.gradient.sum().data());
  });
  t.backward(out.hidden, dy.value);
  std::vector<Variable<float>> inputs = {layer.input, layer.context, layer.weight, layer.bias};
  if (with_first) inputs.push_back(layer.first.hidden);
  if (with_first && cell == RecurrentCell::lstm) inputs.push_back(layer.first.cell);
  for (const auto& x : inputs) {
    const std::vector<float> gradient = numbers(x.gradient.sum());
    all.insert(all.end(), gradient.begin(), gradient.end());
  }
  return all;
}

/// Returns the root mean square of a - b, divided by that of b.
double relative_difference(const std::vector<float>& a, const std::vector<float>& b) {
  REQUIRE(a.size() == b.size());
  double difference = 0, size = 0;
  for (std::size_t i = 0; i < a.size(); ++i) {
    difference += (double{a[i]} - b[i]) * (double{a[i]} - b[i]);
    size += double{b[i]} * b[i];
  }
  return std::sqrt(difference / size);
}

}  // namespace

TEST_CASE("recurrence: training with bfloat16 products is close to float32, and repeats its bits") {
  for (const RecurrentCell cell : kCells)
    for (const bool with_first : {false, true}) {
      const auto exact = train(cell, Precision::float32, with_first);
      const auto rounded = train(cell, Precision::bfloat16, with_first);
      const double difference = relative_difference(rounded, exact);
      CHECK(difference > 1e-5);
      CHECK(difference < 1e-2);
      CHECK(train(cell, Precision::float32, with_first) == exact);
      CHECK(train(cell, Precision::bfloat16, with_first) == rounded);
    }
}

TEST_CASE("recurrence: training and inference agree, and bfloat16 rounds the products of all steps") {
  for (const RecurrentCell cell : kCells) {
    Training<float> t;
    const Layer<float> layer(t, cell, Direction::both, 37, kOffsets);
    const std::vector<float> exact = numbers(layer.run(t.graph));
    in_each_precision(t.arena, nullptr, [&](Graph<float>& graph) {
      const std::vector<float> found = numbers(layer.run(graph));
      if (graph.device().cpu().precision == Precision::int8) {
        CHECK(relative_difference(found, exact) < 3e-2);
        return;
      }
      t.device.precision = graph.device().cpu().precision;
      // Without instructions for bfloat16, training and inference add up the rounded numbers in different orders.
      CHECK(relative_difference(numbers(layer.run(t.graph)), found) < 1e-4);
      if (graph.device().cpu().precision == Precision::bfloat16) CHECK(relative_difference(found, exact) > 3e-4);
    });
  }
}

TEST_CASE("recurrence: absent first states are zeros") {
  for (const RecurrentCell cell : kCells) {
    Training<double> t;
    Layer<double> layer(t, cell, Direction::both, 5, kOffsets);
    for (const auto& state : {layer.first.hidden, layer.first.cell})
      std::fill_n(state.value.data(), state.value.size(), 0.0);
    const auto with = layer.run(t.graph);
    layer.first = {};
    const auto without = layer.run(t.graph);
    CHECK(numbers(with) == numbers(without));
  }
}

TEST_CASE("recurrence: sequences without tokens end in their first states, and no sequences give no states") {
  for (const RecurrentCell cell : kCells)
    for (const std::vector<std::int32_t>& offsets : {std::vector<std::int32_t>{0, 0, 0}, {0}, {}}) {
      Training<float> t;
      Layer<float> layer(t, cell, Direction::both, 5, offsets);
      const auto out = layer.run(t.graph);
      CHECK(numbers(out.last.hidden.value) == numbers(layer.first.hidden.value));
      if (out.last.cell) CHECK(numbers(out.last.cell.value) == numbers(layer.first.cell.value));
      t.backward(out.last.hidden, layer.first.hidden.value);
      CHECK(numbers(layer.first.hidden.gradient.sum()) == numbers(layer.first.hidden.value));
      for (const float gradient : layer.weight.gradient.sum().span()) CHECK(gradient == 0);
      in_each_precision(t.arena, nullptr, [&](Graph<float>& graph) {
        CHECK(numbers(layer.run(graph).last.hidden.value) == numbers(layer.first.hidden.value));
        const RecurrentState<float> first = std::exchange(layer.first, {});
        for (const float x : numbers(layer.run(graph))) CHECK(x == 0);
        layer.first = first;
      });
    }
}

TEST_CASE("recurrence: a wrong shape names the op, the argument and both shapes") {
  Training<float> t;
  const Layer<float> layer(t, RecurrentCell::gru, Direction::forward, 4, kOffsets);
  const auto run = [&](const Variable<float>& input, const Variable<float>& context,
                       const RecurrentState<float>& first) {
    recurrence<float>(t.graph, RecurrentCell::gru, Direction::forward, input, context, layer.weight, layer.bias, first,
                      layer.packed());
  };
  CHECK_THROWS_WITH_AS(run(layer.context, {}, {}), "internal: recurrence: input has shape [5, 12], expected [12, 12]",
                       Error);
  CHECK_THROWS_WITH_AS(run(layer.input, layer.input, {}),
                       "internal: recurrence: context has shape [12, 12], expected [5, 12]", Error);
  CHECK_THROWS_WITH_AS(run(layer.input, {}, {layer.context, {}}),
                       "internal: recurrence: first.hidden has shape [5, 12], expected [5, 4]", Error);
}
