#include "heed/ops/recurrent_cell.h"

#include "heed/base/error.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "op_test.h"
#include "training.h"

using namespace heed;

TEST_CASE("recurrent_cell: gradients of h' and c', with and without context and bias, odd widths") {
  for (const RecurrentCell cell : {RecurrentCell::gru, RecurrentCell::lstm})
    for (const std::int64_t width : {1, 7, 17}) {
      const std::int64_t gates = gate_count(cell) * width;
      const bool lstm = cell == RecurrentCell::lstm;
      CAPTURE(lstm);
      CAPTURE(width);
      const std::vector<Shape> shapes = {{3, gates}, {3, gates}, {3, gates}, {gates}, {3, width}, {3, width}};
      require_gradients(shapes, [&](Graph<double>& graph, std::vector<Variable<double>>& in) {
        return recurrent_cell(graph, cell, in[0], in[1], in[2], in[3], {in[4], in[5]}).hidden;
      });
      require_gradients(shapes, [&](Graph<double>& graph, std::vector<Variable<double>>& in) {
        const RecurrentState<double> state{in[4], in[5]};
        const auto once = recurrent_cell(graph, cell, in[0], in[1], in[2], in[3], state);
        // The second step adds to the gradients of the input and of the hidden gates.
        const auto twice = recurrent_cell(graph, cell, in[0], {}, in[2], {}, once);
        return lstm ? twice.cell : twice.hidden;
      });
    }
}

TEST_CASE("recurrent_cell: a row has the same bits whatever the other rows are") {
  for (const RecurrentCell cell : {RecurrentCell::gru, RecurrentCell::lstm}) {
    const std::int64_t width = 37, gates = gate_count(cell) * width;
    Training<float> t;
    const auto input = t.normal({5, gates}), hidden = t.normal({5, gates}), bias = t.normal({gates});
    const auto h = t.normal({5, width}), c = t.normal({5, width});
    const auto all = recurrent_cell(t.graph, cell, input, {}, hidden, bias, {h, c});
    for (std::int64_t r = 0; r < 5; ++r) {
      const auto row = [&](const Variable<float>& x) { return t.graph.input(x.value.row_block(r, 1)); };
      const auto alone = recurrent_cell(t.graph, cell, row(input), {}, row(hidden), bias, {row(h), row(c)});
      CHECK(std::equal(alone.hidden.value.data(), alone.hidden.value.data() + width, all.hidden.value.row(r)));
      if (alone.cell)
        CHECK(std::equal(alone.cell.value.data(), alone.cell.value.data() + width, all.cell.value.row(r)));
    }
  }
}

namespace {

/// Returns the largest relative errors of the sigmoid function and of tanh on [-20, 20], compared with std::exp() and
/// std::tanh(). An LSTM whose other gates are wide open computes both: c' = s(u_f) for c = 1 and g = 0, and
/// c' = tanh(u_g) for c = 0 and an open input gate.
template <class T>
std::pair<double, double> gate_errors() {
  Training<T> t;
  const std::int64_t n = 4001;
  const auto input = t.normal({2, 4 * n}), zeros = t.normal({2, 4 * n}), h = t.normal({2, n}), c = t.normal({2, n});
  for (const auto& x : {input, zeros, h, c}) std::fill_n(x.value.data(), x.value.size(), T(0));
  const auto x_of = [](std::int64_t i) { return static_cast<T>(i - 2000) / 100; };
  for (std::int64_t i = 0; i < n; ++i) {
    c.value.row(0)[i] = 1;
    input.value.row(0)[n + i] = x_of(i);
    input.value.row(1)[i] = 100;
    input.value.row(1)[2 * n + i] = x_of(i);
  }
  const auto after = recurrent_cell(t.graph, RecurrentCell::lstm, input, {}, zeros, {}, {h, c}).cell.value;
  double sigmoid = 0, tanh = 0;
  for (std::int64_t i = 0; i < n; ++i) {
    const auto x = static_cast<double>(x_of(i)), s = 1 / (1 + std::exp(-x)), g = std::tanh(x);
    sigmoid = std::max(sigmoid, std::abs(after.row(0)[i] - s) / s);
    if (x != 0) tanh = std::max(tanh, std::abs(after.row(1)[i] - g) / std::abs(g));
  }
  return {sigmoid, tanh};
}

}  // namespace

TEST_CASE("recurrent_cell: sigmoid and tanh are exact to the last bits on every instruction set") {
  CHECK(gate_errors<float>().first < 5e-7);
  CHECK(gate_errors<float>().second < 5e-7);
  CHECK(gate_errors<double>().first < 2e-15);
  CHECK(gate_errors<double>().second < 2e-15);
}

TEST_CASE("recurrent_cell: gates far from zero saturate without overflow, and NaN stays NaN") {
  Training<float> t;
  const auto input = t.normal({1, 12}), zeros = t.normal({1, 12}), h = t.normal({1, 4});
  std::fill_n(zeros.value.data(), 12, 0.0F);
  const float inf = std::numeric_limits<float>::infinity();
  std::fill_n(h.value.data(), 4, 0.5F);
  // columns: reset gate closed and update gate closed, n = tanh(1e30); update gate open; all infinite; NaN
  const float u[12] = {-1e30F, 0, inf, 0, -1e30F, 1e30F, -inf, NAN, 1e30F, 1e30F, -inf, 0};
  std::copy_n(u, 12, input.value.data());
  const auto y = recurrent_cell(t.graph, RecurrentCell::gru, input, {}, zeros, {}, {h, {}}).hidden.value;
  CHECK(y[0] == 1.0F);
  CHECK(y[1] == 0.5F);
  CHECK(y[2] == -1.0F);
  CHECK(std::isnan(y[3]));
}

TEST_CASE("recurrent_cell: a wrong shape names the op, the argument and both shapes") {
  Training<float> t;
  const auto x = t.normal({3, 12}), wrong = t.normal({3, 16}), h = t.normal({3, 4});
  CHECK_THROWS_WITH_AS(recurrent_cell(t.graph, RecurrentCell::gru, x, {}, wrong, {}, {h, {}}),
                       "internal: recurrent_cell: hidden has shape [3, 16], expected [3, 12]", Error);
  CHECK_THROWS_WITH_AS(recurrent_cell(t.graph, RecurrentCell::lstm, wrong, {}, wrong, {}, {h, {}}),
                       "internal: recurrent_cell: state.cell has shape [], expected [3, 4]", Error);
}
