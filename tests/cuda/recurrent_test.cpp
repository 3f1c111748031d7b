#include <limits>
#include <numeric>

#include "heed/ops/recurrence.h"
#include "kernel_check.h"

namespace heed {
namespace {

constexpr RecurrentCell kCells[] = {RecurrentCell::gru, RecurrentCell::lstm};

/// Returns numbers like those that a forward pass saves: gates between 0 and 1.
template <class T>
TestTensor<T> saved_gates(const Shape& shape, std::uint64_t number) {
  TestTensor<T> out = normal<T>(shape, number);
  for (T& value : out.values) value = T(1) / (T(1) + std::exp(value));
  return out;
}

TEST_CASE_TEMPLATE("recurrent cell on a GPU: rows in order, all parts present", T, float, double) {
  constexpr std::int64_t kRows = 5;
  for (const RecurrentCell cell : kCells)
    for (const std::int64_t n : {1, 31, 32, 33, 100}) {
      CAPTURE(static_cast<int>(cell));
      CAPTURE(n);
      const std::int64_t gates = gate_count(cell) * n;
      TestTensor<T> input = normal<T>({kRows, gates}, 1), context = normal<T>({kRows, gates}, 2);
      TestTensor<T> product = normal<T>({kRows, gates}, 3), bias = normal<T>({gates}, 4);
      TestTensor<T> hidden = normal<T>({kRows, n}, 5), c = normal<T>({kRows, n}, 6), after = normal<T>({kRows, n}, 7);
      TestTensor<T> saved = saved_gates<T>({kRows, kSavedGates * n}, 8);
      CellStep<T> step;
      step.cell = cell;
      step.rows = kRows;
      step.width = n;
      step.gates_stride = gates;
      step.output_stride = n;
      step.hidden = hidden.values.data();
      step.cell_before = c.values.data();
      check_kernels<T>({normal<T>({kRows, n}, 9), normal<T>({kRows, n}, 10), normal<T>({kRows, kSavedGates * n}, 11)},
                       [&](auto& device, std::span<const Tensor<T>> to) {
                         CellForward<T> forward{step};
                         forward.input = input.values.data();
                         forward.context = context.values.data();
                         forward.product = product.values.data();
                         forward.product_stride = gates;
                         forward.bias = bias.values.data();
                         forward.output = to[0].data();
                         forward.cell_after = to[1].data();
                         forward.saved = to[2].data();
                         cell_forward(device, forward);
                       });
      for (const bool adds : {true, false})
        check_kernels<T>({normal<T>({kRows, n}, 12), normal<T>({kRows, n}, 13), normal<T>({kRows, gates}, 14),
                          normal<T>({kRows, gates}, 15), normal<T>({kRows, gates}, 16), normal<T>({gates}, 17)},
                         [&](auto& device, std::span<const Tensor<T>> to) {
                           CellBackward<T> backward{step};
                           backward.saved = saved.values.data();
                           backward.cell_after = after.values.data();
                           backward.hidden_gradient = to[0].data();
                           backward.cell_gradient = to[1].data();
                           backward.product_gradient = to[2].data();
                           backward.product_stride = gates;
                           backward.input_gradient = to[3].data();
                           backward.context_gradient = to[4].data();
                           backward.bias_gradient = to[5].data();
                           backward.adds_to_input = adds;
                           backward.adds_to_product = !adds;
                           cell_backward(device, backward);
                         });
    }
}

TEST_CASE_TEMPLATE("recurrent cell on a GPU: rows in another order, absent parts, arrays in the same memory", T, float,
                   double) {
  constexpr std::int64_t kRows = 70, kTokens = 75, kN = 9, kStride = kSavedGates * kN;
  std::vector<std::int32_t> tokens(kRows), sequences(kRows);
  for (std::int32_t r = 0; r < kRows; ++r) {
    tokens[static_cast<std::size_t>(r)] = static_cast<std::int32_t>(r * 7 % kTokens);
    sequences[static_cast<std::size_t>(r)] = kRows - 1 - r;
  }
  for (const RecurrentCell cell : kCells)
    for (const bool has_context : {true, false}) {
      CAPTURE(static_cast<int>(cell));
      CAPTURE(has_context);
      const std::int64_t gates = gate_count(cell) * kN, wide = 2 * gates;
      TestTensor<T> input = normal<T>({kTokens, wide}, 1), context = normal<T>({kRows, wide}, 2);
      TestTensor<T> c = normal<T>({kRows, kN}, 3), after = normal<T>({kRows, kN}, 4),
                    hidden = normal<T>({kRows, kN}, 5);
      TestTensor<T> arrived = normal<T>({kTokens, 2 * kN}, 6), later = normal<T>({kRows, kN}, 7);
      CellStep<T> step;
      step.cell = cell;
      step.rows = kRows;
      step.width = kN;
      step.tokens = tokens.data();
      step.sequences = sequences.data();
      step.gates_stride = wide;
      step.output_stride = 2 * kN;
      // The state, the product and c lie in the memory of the results.
      check_kernels<T>({normal<T>({kTokens, 2 * kN}, 8), normal<T>({kRows, kN}, 9), normal<T>({kRows, kStride}, 10),
                        normal<T>({kRows, kN}, 11)},
                       [&](auto& device, std::span<const Tensor<T>> to) {
                         CellForward<T> forward{step};
                         forward.input = input.values.data();
                         forward.context = has_context ? context.values.data() : nullptr;
                         forward.product = forward.saved = to[2].data();
                         forward.product_stride = kStride;
                         forward.output = to[0].data();
                         forward.cell_before = forward.cell_after = to[1].data();
                         forward.hidden = forward.next = to[3].data();
                         forward.next_rows = 40;
                         cell_forward(device, forward);
                       });
      step.hidden = hidden.values.data();
      step.cell_before = c.values.data();
      check_kernels<T>({normal<T>({kRows, kN}, 12), normal<T>({kRows, kN}, 13), saved_gates<T>({kRows, kStride}, 14),
                        normal<T>({kTokens, wide}, 15), normal<T>({kRows, wide}, 16), normal<T>({gates}, 17)},
                       [&](auto& device, std::span<const Tensor<T>> to) {
                         CellBackward<T> backward{step};
                         backward.saved = backward.product_gradient = to[2].data();
                         backward.product_stride = kStride;
                         backward.adds_to_product = false;
                         backward.cell_after = after.values.data();
                         backward.output_gradient = arrived.values.data();
                         backward.next_gradient = later.values.data();
                         backward.next_rows = 33;
                         backward.hidden_gradient = to[0].data();
                         backward.cell_gradient = to[1].data();
                         backward.input_gradient = has_context ? nullptr : to[3].data();
                         backward.context_gradient = has_context ? to[4].data() : nullptr;
                         backward.bias_gradient = has_context ? to[5].data() : nullptr;
                         cell_backward(device, backward);
                       });
    }
}

TEST_CASE("recurrent cell on a GPU: no rows") {
  check_kernels<float>({normal<float>({12}, 1)}, [&](auto& device, std::span<const Tensor<float>> to) {
    CellStep<float> step;
    step.width = 4;
    cell_forward(device, CellForward<float>{step});
    CellBackward<float> backward{step};
    backward.bias_gradient = to[0].data();
    cell_backward(device, backward);
  });
}

/// A recurrent layer of a test: what it reads. The arrays are those of one direction of a layer that reads in both, so
/// that rows are twice as long as the way's part.
template <class T>
struct Layer {
  std::vector<std::int32_t> offsets{0};
  Arena arena;
  RecurrenceArrays<T> arrays;
  std::int64_t sequences, tokens, gates, width;
  TestTensor<T> input, context, weight, bias, first_hidden, first_cell;

  Layer(RecurrentCell cell, std::int64_t n, const std::vector<std::int32_t>& lengths, bool has_parts, bool backward)
      : gates(gate_count(cell) * n), width(n) {
    for (const std::int32_t length : lengths) offsets.push_back(offsets.back() + length);
    sequences = std::ssize(lengths);
    tokens = offsets.back();
    input = normal<T>({tokens, 2 * gates}, 1);
    context = normal<T>({sequences, 2 * gates}, 2);
    weight = normal<T>({gates, n}, 3);
    for (T& value : weight.values) value /= std::sqrt(static_cast<T>(n));
    bias = normal<T>({gates}, 4);
    first_hidden = normal<T>({sequences, 2 * n}, 5);
    first_cell = normal<T>({sequences, 2 * n}, 6);
    arrays.cell = cell;
    arrays.order = time_order(arena, {offsets}, backward);
    arrays.width = n;
    arrays.gates_stride = 2 * gates;
    arrays.state_stride = 2 * n;
    arrays.input = input.values.data() + gates;
    arrays.weight = weight.view();
    if (!has_parts) return;
    arrays.context = context.values.data() + gates;
    arrays.bias = bias.values.data();
    arrays.first_hidden = first_hidden.values.data() + n;
    arrays.first_cell = first_cell.values.data() + n;
  }

  bool lstm() const { return arrays.cell == RecurrentCell::lstm; }
};

/// Calls body(layer) for layers with both cells, several widths, both directions, and with all parts or few.
template <class T, class Body>
void for_each_layer(const Body& body) {
  const std::vector<std::vector<std::int32_t>> batches{
      {2, 5, 0, 1, 5}, {1}, {0, 0}, {}, std::vector<std::int32_t>(40, 2)};
  for (const RecurrentCell cell : kCells)
    for (const std::int64_t n : {1, 33, 70})
      for (const auto& lengths : batches)
        for (const bool has_parts : {true, false}) {
          if (lengths.size() == 40 && (n != 33 || !has_parts)) continue;  // slow, and tests nothing else
          CAPTURE(static_cast<int>(cell));
          CAPTURE(n);
          CAPTURE(lengths.size());
          CAPTURE(has_parts);
          body(Layer<T>(cell, n, lengths, has_parts, n == 33));
        }
}

TEST_CASE_TEMPLATE("recurrence on a GPU: training and inference", T, float, double) {
  for_each_layer<T>([](const Layer<T>& layer) {
    const std::int64_t n = layer.width;
    check_kernels<T>({normal<T>({layer.tokens, 2 * n}, 11), normal<T>({layer.sequences, 2 * n}, 12),
                      normal<T>({layer.sequences, 2 * n}, 13), normal<T>({layer.tokens, kSavedGates * n}, 14),
                      normal<T>({layer.tokens, n}, 15), normal<T>({layer.sequences + layer.tokens, n}, 16),
                      normal<T>({layer.tokens, 2 * n}, 17), normal<T>({layer.sequences, 2 * n}, 18),
                      normal<T>({layer.sequences, 2 * n}, 19)},
                     [&](auto& device, std::span<const Tensor<T>> to) {
                       RecurrenceArrays<T> arrays = layer.arrays;
                       arrays.output = to[0].data() + n;
                       arrays.last_hidden = to[1].data() + n;
                       arrays.last_cell = layer.lstm() ? to[2].data() + n : nullptr;
                       arrays.gates = to[3].data();
                       arrays.hidden = to[4].data();
                       arrays.cells = layer.lstm() ? to[5].data() : nullptr;
                       recurrence_forward(device, arrays);
                       RecurrenceArrays<T> inference = layer.arrays;
                       inference.output = to[6].data() + n;
                       inference.last_hidden = to[7].data() + n;
                       inference.last_cell = layer.lstm() ? to[8].data() + n : nullptr;
                       recurrence_inference<T>(device, nullptr, inference);
                     });
  });
}

TEST_CASE_TEMPLATE("recurrence on a GPU: gradients", T, float, double) {
  for_each_layer<T>([](const Layer<T>& layer) {
    const std::int64_t n = layer.width;
    const bool has_parts = layer.arrays.bias;
    TestTensor<T> hidden = normal<T>({layer.tokens, n}, 11), cells = normal<T>({layer.sequences + layer.tokens, n}, 12);
    // Without first states, the states before the first step are zeros.
    if (!has_parts && layer.tokens > 0) std::fill_n(hidden.values.begin(), layer.arrays.order.rows(0) * n, T(0));
    TestTensor<T> of_output = normal<T>({layer.tokens, 2 * n}, 13);
    TestTensor<T> of_hidden = normal<T>({layer.sequences, 2 * n}, 14),
                  of_cell = normal<T>({layer.sequences, 2 * n}, 15);
    check_kernels<T>({saved_gates<T>({layer.tokens, kSavedGates * n}, 21),
                      normal<T>({layer.tokens, 2 * layer.gates}, 22), normal<T>({layer.sequences, 2 * layer.gates}, 23),
                      normal<T>({layer.gates, n}, 24), normal<T>({layer.gates}, 25),
                      normal<T>({layer.sequences, 2 * n}, 26), normal<T>({layer.sequences, 2 * n}, 27)},
                     [&](auto& device, std::span<const Tensor<T>> to) {
                       RecurrenceArrays<T> arrays = layer.arrays;
                       arrays.gates = to[0].data();
                       arrays.hidden = hidden.values.data();
                       arrays.cells = layer.lstm() ? cells.values.data() : nullptr;
                       RecurrenceGradients<T> g;
                       g.output = of_output.values.data() + n;
                       g.weight = to[3].data();
                       if (has_parts) {
                         g.last_hidden = of_hidden.values.data() + n;
                         g.last_cell = of_cell.values.data() + n;
                         g.input = to[1].data() + layer.gates;
                         g.context = to[2].data() + layer.gates;
                         g.bias = to[4].data();
                         g.first_hidden = to[5].data() + n;
                         g.first_cell = to[6].data() + n;
                         g.adds_to_input = n != 70;
                       }
                       recurrence_backward(device, arrays, g);
                     });
  });
}

}  // namespace
}  // namespace heed
