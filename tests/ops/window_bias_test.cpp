// Tests of window_bias(), and of attention() within windows.
#include "heed/ops/window_bias.h"

#include <cmath>
#include <cstring>
#include <numeric>

#include "attention_case.h"
#include "heed/base/error.h"
#include "heed/ops/attention.h"
#include "heed/ops/decode_attention.h"
#include "op_test.h"
#include "training.h"

using namespace heed;

namespace {

/// The windows of a packed batch, and the offsets of their sequences.
struct WindowBatch {
  std::vector<WindowShape> shapes;
  std::vector<std::int32_t> shape_of;
  std::vector<std::int32_t> offsets{0};

  WindowBatch(std::vector<WindowShape> different, std::vector<std::int32_t> each)
      : shapes(std::move(different)), shape_of(std::move(each)) {
    for (const std::int32_t k : shape_of)
      offsets.push_back(offsets.back() + static_cast<std::int32_t>(shapes[static_cast<std::size_t>(k)].tokens()));
  }
  PackedWindows windows() const { return {shapes, shape_of}; }
  PackedOffsets packed() const { return {offsets}; }
  std::int64_t tokens() const { return offsets.back(); }
};

std::int64_t entries(std::int64_t window) {
  return (2 * window - 1) * (2 * window - 1);
}

/// Returns the row of the table for query i and key j of a window: formula 4 of Liu et al. 2021.
std::int64_t table_row(const WindowShape& shape, std::int64_t i, std::int64_t j, std::int64_t window) {
  const std::int64_t y = i / shape.columns - j / shape.columns, x = i % shape.columns - j % shape.columns;
  return (y + window - 1) * (2 * window - 1) + x + window - 1;
}

/// Computes attention within windows by its definition, one query at a time, in double. x [N, 3D] is query, key and
/// value side by side.
template <class T>
ExpectedAttention plain_attention(const WindowBatch& batch, Tensor<T> x, Tensor<T> table, std::int64_t window) {
  const std::int64_t heads = table.columns(), width = x.columns() / 3, d = width / heads;
  ExpectedAttention e;
  e.out.resize(static_cast<std::size_t>(x.rows() * width));
  for (int b = 0; b < batch.packed().sequences(); ++b)
    for (std::int64_t h = 0; h < heads; ++h)
      for (std::int64_t i = 0; i < batch.packed().length(b); ++i) {
        const std::int64_t query = batch.packed().begin(b) + i;
        std::vector<double> p;
        for (std::int64_t j = 0; j < batch.packed().length(b); ++j) {
          const T* key = x.row(batch.packed().begin(b) + j) + width;
          double s = 0;
          for (std::int64_t c = h * d; c < (h + 1) * d; ++c) s += double(x.row(query)[c]) * double(key[c]);
          const std::int64_t entry = table_row(batch.windows().shape(b), i, j, window);
          p.push_back(std::exp(s / std::sqrt(static_cast<double>(d)) + double(table.row(entry)[h])));
        }
        const double sum = std::accumulate(p.begin(), p.end(), 0.0);
        for (std::size_t j = 0; j < p.size(); ++j) {
          const T* value = x.row(batch.packed().begin(b) + static_cast<std::int64_t>(j)) + 2 * width;
          e.weights.push_back(p[j] / sum);
          for (std::int64_t c = h * d; c < (h + 1) * d; ++c)
            e.out[static_cast<std::size_t>(query * width + c)] += p[j] / sum * double(value[c]);
        }
      }
  return e;
}

/// Computes the attention of all windows of a batch over x [N, 3D], which is query, key and value side by side.
template <class T>
Variable<T> attend(Graph<T>& graph, const WindowBatch& batch, const Variable<T>& x, const PositionBias<T>& positions,
                   AttentionOptions options, const Variable<T>& weights = {}) {
  const std::int64_t width = x.value.columns() / 3;
  return attention<T>(graph, {x, 0}, {x, width}, {x, 2 * width}, width, batch.packed(), batch.packed(), options,
                      weights, positions);
}

/// Returns windows of nine shapes of at most 3 x 3 tokens, of which no window has the shape 1 x 2.
WindowBatch nine_shapes() {
  return {{{1, 1}, {3, 3}, {1, 3}, {3, 1}, {2, 3}, {2, 2}, {3, 2}, {1, 2}, {2, 1}}, {1, 0, 5, 2, 3, 3, 6, 8, 1, 4}};
}

}  // namespace

TEST_CASE_TEMPLATE("window bias: formula 4 of the paper for each shape of windows, and zeros between", T, float,
                   double) {
  for (const int window : {1, 2, 3, 7, 8, 12}) {
    CAPTURE(window);
    const std::int32_t half = (window + 1) / 2;
    const WindowBatch batch({{window, window}, {half, window}, {window, 1}, {1, 1}, {half, half}}, {});
    Training<T> t;
    const auto table = t.normal({entries(window), 3});
    const PositionBias<T> bias = window_bias(t.graph, table, window, batch.windows());
    CHECK(bias.bias.shape() == Shape{3, window_bias_columns(batch.shapes)});
    std::int64_t wrong = 0;
    for (std::int64_t h = 0; h < 3; ++h) {
      const T* row = bias.bias.value.row(h);
      for (const WindowShape& shape : batch.shapes)
        for (std::int64_t i = 0; i < shape.tokens(); ++i)
          for (std::int64_t j = 0; j < window_matrix_stride(shape); ++j, ++row)
            wrong += *row != (j < shape.tokens() ? table.value.row(table_row(shape, i, j, window))[h] : T(0));
      for (std::int64_t j = 0; j < kPositionBiasSlack; ++j, ++row) wrong += *row != 0;
      CHECK(row == bias.bias.value.row(h) + bias.bias.value.columns());
    }
    CHECK(wrong == 0);
  }
}

TEST_CASE("window bias: gradients of the table") {
  static const WindowBatch batch = nine_shapes(), large({{2, 9}, {10, 3}}, {});
  require_gradients({{entries(3), 2}}, [](Graph<double>& graph, std::vector<Variable<double>>& in) {
    return window_bias(graph, in[0], 3, batch.windows()).bias;
  });
  require_gradients({{entries(10), 1}}, [](Graph<double>& graph, std::vector<Variable<double>>& in) {
    return window_bias(graph, in[0], 10, large.windows()).bias;
  });
}

TEST_CASE("window bias: gradients of attention within windows of nine shapes, with dropout, also in two layers") {
  static const WindowBatch batch = nine_shapes();
  for (const double dropout : {0.0, 0.3}) {
    require_gradients({{batch.tokens(), 18}, {entries(3), 2}}, [&](auto& graph, auto& in) {
      return attend(graph, batch, in[0], window_bias(graph, in[1], 3, batch.windows()), {2, false, dropout});
    });
    require_gradients({{batch.tokens(), 18}, {entries(3), 2}}, [&](auto& graph, auto& in) {
      const PositionBias<double> bias = window_bias(graph, in[1], 3, batch.windows());
      const Variable<double> y = attend(graph, batch, in[0], bias, {2, false, dropout});
      return attention<double>(graph, {in[0], 0}, {in[0], 6}, {y}, 6, batch.packed(), batch.packed(),
                               {2, false, dropout}, {}, bias);
    });
  }
}

TEST_CASE("window bias: gradients of windows that are longer than a block of queries") {
  static const WindowBatch batch({{7, 7}, {3, 7}}, {1, 0});
  require_gradients(
      {{batch.tokens(), 6}, {entries(7), 1}},
      [&](auto& graph, auto& in) {
        return attend(graph, batch, in[0], window_bias(graph, in[1], 7, batch.windows()), {1, false, 0.2});
      },
      1e-7);
}

TEST_CASE_TEMPLATE("window bias: attention by its definition, every instruction set, head sizes and windows", T, float,
                   double) {
  for (const int d : {1, 5, 8, 16, 32, 33}) {
    CAPTURE(d);
    const WindowBatch batch({{7, 7}, {3, 7}, {4, 7}, {3, 3}, {4, 4}, {12, 12}}, {3, 1, 0, 0, 5, 2, 4, 0, 3});
    const int heads = d < 33 ? 3 : 1;
    Training<T> t;
    const auto x = t.normal({batch.tokens(), 3 * heads * d}), table = t.normal({entries(12), heads});
    const Variable<T> weights = attention_weights(t.graph, batch.packed(), batch.packed(), heads);
    const auto y = attend(t.graph, batch, x, window_bias(t.graph, table, 12, batch.windows()), {heads}, weights);
    const ExpectedAttention expected = plain_attention(batch, x.value, table.value, 12);
    const double bound = sizeof(T) == 4 ? 3e-5 : 1e-12;
    CHECK(worst_difference(y.value, expected.out) < bound);
    CHECK(worst_difference(Tensor<T>(weights.value.data(), {std::ssize(expected.weights)}), expected.weights) < bound);
  }
}

TEST_CASE_TEMPLATE("window bias: a window by itself has the bits it has in a batch, forward and back", T, float,
                   double) {
  const WindowBatch batch({{7, 7}, {3, 4}, {4, 4}}, {1, 0, 2, 0, 1});
  const std::int64_t width = 32;
  Training<T> t;
  const auto x = t.normal({batch.tokens(), 3 * width}), table = t.normal({entries(7), 4});
  const Tensor<T> dy = t.normal({batch.tokens(), width}).value;
  const auto y = attend(t.graph, batch, x, window_bias(t.graph, table, 7, batch.windows()), {4});
  const std::vector<T> values(y.value.data(), y.value.data() + y.value.size());
  t.backward(y, dy);
  Training<T> sum;  // of the gradients of the table
  const Tensor<T> dtable = sum.arena.template zeros<T>(table.shape());
  for (int b = 0; b < batch.packed().sequences(); ++b) {
    CAPTURE(b);
    const std::int64_t begin = batch.packed().begin(b), n = batch.packed().length(b);
    const WindowBatch one({batch.windows().shape(b)}, {0});
    Training<T> alone;
    const auto x1 = alone.graph.input(x.value.row_block(begin, n), true);
    const auto table1 = alone.graph.input(table.value, true);
    const auto y1 = attend(alone.graph, one, x1, window_bias(alone.graph, table1, 7, one.windows()), {4});
    CHECK(std::memcmp(y1.value.data(), values.data() + begin * width,
                      static_cast<std::size_t>(n * width) * sizeof(T)) == 0);
    alone.backward(y1, dy.row_block(begin, n));
    CHECK(largest_difference(x1.gradient.sum(), x.gradient.sum().row_block(begin, n)) == 0);
    for (std::int64_t i = 0; i < dtable.size(); ++i) dtable[i] += table1.gradient.sum()[i];
  }
  CHECK(largest_difference(dtable, table.gradient.sum()) < (sizeof(T) == 4 ? 1e-4 : 1e-12));
}

TEST_CASE("window bias: in inference, and without windows") {
  Arena arena;
  CpuContext device{arena};
  ParameterLayout layout;
  ParameterValues<float> values{layout};
  Graph<float> graph(device, values);
  const WindowBatch none({{2, 2}}, {});
  const Variable<float> table = graph.input(arena.zeros<float>({9, 2})), x = graph.input(arena.zeros<float>({0, 12}));
  const PositionBias<float> bias = window_bias(graph, table, 2, none.windows());
  CHECK_FALSE(bias.bias.tracked());
  CHECK(attend(graph, none, x, bias, {2}).value.size() == 0);
}

TEST_CASE("window bias: wrong arguments are named") {
  Training<float> t;
  const WindowBatch batch({{2, 2}, {1, 2}}, {1, 0}), empty({}, {}), flat({{0, 2}}, {}), high({{3, 1}}, {});
  const auto x = t.normal({6, 12}), table = t.normal({9, 2});
  const auto make = [&](const WindowBatch& windows, const Variable<float>& from) {
    return window_bias(t.graph, from, 2, windows.windows());
  };
  CHECK_THROWS_WITH_AS(make(batch, x), "internal: window_bias: table has shape [6, 12], expected [9, 12]", Error);
  CHECK_THROWS_WITH_AS(make(empty, table), "internal: window_bias: no shapes of windows", Error);
  CHECK_THROWS_WITH_AS(make(flat, table),
                       "internal: window_bias: a window of 0 x 2 tokens, expected 1 to 2 rows and columns", Error);
  CHECK_THROWS_WITH_AS(make(high, table),
                       "internal: window_bias: a window of 3 x 1 tokens, expected 1 to 2 rows and columns", Error);

  PositionBias<float> bias = make(batch, table);
  const auto call = [&](const std::vector<std::int32_t>& shape_of, AttentionOptions options) {
    bias.windows.shape_of = shape_of;
    attend(t.graph, batch, x, bias, options);
  };
  CHECK_THROWS_WITH_AS(call({1}, {2}), "internal: attention: 1 windows, but 2 sequences", Error);
  CHECK_THROWS_WITH_AS(call({1, 2}, {2}), "internal: attention: sequence 1 has shape number 2 of 2", Error);
  CHECK_THROWS_WITH_AS(call({-1, 0}, {2}), "internal: attention: sequence 0 has shape number -1 of 2", Error);
  CHECK_THROWS_WITH_AS(call({0, 0}, {2}), "internal: attention: a window of 4 tokens, but sequence 0 has 2", Error);
  CHECK_THROWS_WITH_AS(call({1, 0}, {4}), "internal: attention: bias has shape [2, 112], expected [4, 112]", Error);
  CHECK_THROWS_WITH_AS(call({1, 0}, {2, true}), "internal: attention: a bias of windows, but a causal attention",
                       Error);
  // Decoding attends to earlier tokens, which windows do not have.
  const std::int32_t slots[] = {0}, lengths[] = {1};
  const CachedRows<float> rows{reinterpret_cast<const std::byte*>(x.value.data()), 48};
  CHECK_THROWS_WITH_AS(cached_attention<float>(t.device, {x.value.data(), 12}, rows, rows, slots, 1, lengths, 2, 4,
                                               t.arena.tensor<float>({4}).data(), bias),
                       "internal: cached_attention: a bias of windows, but a causal attention", Error);
}
