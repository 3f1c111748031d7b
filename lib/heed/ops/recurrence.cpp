#include "heed/ops/recurrence.h"

#include <algorithm>
#include <numeric>

#include "heed/ops/check.h"

namespace heed {

TimeOrder time_order(Arena& arena, PackedOffsets packed, bool backward) {
  const std::int64_t count = packed.sequences();
  const auto array = [&](std::int64_t size) { return arena.tensor<std::int32_t>({size}).data(); };
  std::int32_t* const sorted = array(count);
  std::iota(sorted, sorted + count, 0);
  std::sort(sorted, sorted + count, [&](std::int32_t a, std::int32_t b) {
    const int left = packed.length(a), right = packed.length(b);
    return left != right ? left > right : a < b;
  });
  const std::int64_t steps = count ? packed.length(sorted[0]) : 0;
  std::int32_t* const begins = array(steps + 1);
  std::int32_t* const tokens = array(packed.tokens());
  std::int32_t row = 0;
  std::int64_t running = count;
  for (std::int32_t t = 0; t < steps; ++t) {
    begins[t] = row;
    while (packed.length(sorted[running - 1]) <= t) --running;
    for (std::int64_t i = 0; i < running; ++i) {
      const std::int32_t sequence = sorted[i];
      tokens[row++] = backward ? packed.begin(sequence + 1) - 1 - t : packed.begin(sequence) + t;
    }
  }
  begins[steps] = row;
  return {count, steps, sorted, begins, tokens};
}

namespace {

template <class T>
void check_shapes(RecurrentCell cell, Direction direction, const Variable<T>& input, const Variable<T>& context,
                  const Variable<T>& weight, const Variable<T>& bias, const RecurrentState<T>& first,
                  PackedOffsets packed) {
  const char* const op = "recurrence";
  const std::int64_t directions = direction_count(direction), width = weight.value.columns();
  const std::int64_t gates = directions * gate_count(cell) * width;
  check_shape(op, "weight", weight.shape(), {gates, width});
  check_shape(op, "input", input.shape(), {packed.tokens(), gates});
  if (context) check_shape(op, "context", context.shape(), {packed.sequences(), gates});
  if (bias) check_shape(op, "bias", bias.shape(), {gates});
  if (first.hidden) check_shape(op, "first.hidden", first.hidden.shape(), {packed.sequences(), directions * width});
  if (first.cell) check_shape(op, "first.cell", first.cell.shape(), {packed.sequences(), directions * width});
}

/// Returns the address of element `at` of a tensor, or null where the tensor is absent.
template <class T>
T* from(const Tensor<T>& tensor, std::int64_t at) {
  return tensor ? tensor.data() + at : nullptr;
}

}  // namespace

template <class T>
RecurrenceResult<T> recurrence(Graph<T>& graph, RecurrentCell cell, Direction direction, const Variable<T>& input,
                               const Variable<T>& context, const Variable<T>& weight, const Variable<T>& bias,
                               const RecurrentState<T>& first, PackedOffsets packed) {
  check_shapes(cell, direction, input, context, weight, bias, first, packed);
  const bool lstm = cell == RecurrentCell::lstm;
  const std::int64_t directions = direction_count(direction), width = weight.value.columns();
  const std::int64_t tokens = packed.tokens(), sequences = packed.sequences();
  RecurrenceResult<T> out{graph.result({tokens, directions * width}),
                          {graph.result({sequences, directions * width}), {}}};
  if (lstm) out.last.cell = graph.result({sequences, directions * width});
  std::optional<ArenaScope> scope;
  if (!graph.recording()) scope.emplace(graph.arena());

  RecurrenceArrays<T> arrays[2];
  for (std::int64_t index = 0; index < directions; ++index) {
    RecurrenceArrays<T>& a = arrays[index];
    const std::int64_t gates = index * gate_count(cell) * width, state = index * width;
    a.cell = cell;
    a.order = time_order(graph.host_arena(), packed, direction == Direction::backward || index == 1);
    a.width = width;
    a.gates_stride = directions * gate_count(cell) * width;
    a.state_stride = directions * width;
    a.input = from(input.value, gates);
    a.context = from(context.value, gates);
    a.weight = weight.value.row_block(gates, gate_count(cell) * width);
    a.bias = from(bias.value, gates);
    a.first_hidden = from(first.hidden.value, state);
    a.first_cell = from(first.cell.value, state);
    a.output = from(out.hidden.value, state);
    a.last_hidden = from(out.last.hidden.value, state);
    a.last_cell = from(out.last.cell.value, state);
    if (!graph.recording()) {
      graph.run([&](auto& device) { recurrence_inference(device, graph.packed(), a); });
      continue;
    }
    a.gates = graph.arena().template tensor<T>({tokens, kSavedGates * width}).data();
    a.hidden = graph.arena().template tensor<T>({tokens, width}).data();
    if (lstm) a.cells = graph.arena().template tensor<T>({sequences + tokens, width}).data();
    graph.run([&](auto& device) { recurrence_forward(device, a); });
  }
  graph.record([directions, first_arrays = arrays[0], second_arrays = arrays[1], input, context, weight, bias, first,
                out](auto& device) {
    const auto present = [](const Variable<T>& result) {
      return result.gradient && !result.gradient.empty() ? result.gradient.sum() : Tensor<T>();
    };
    const bool adds_to_input = !input.gradient.empty();
    const Tensor<T> input_gradient = input.gradient.begin_writing();
    for (std::int64_t index = 0; index < directions; ++index) {
      const RecurrenceArrays<T>& a = index == 0 ? first_arrays : second_arrays;
      const std::int64_t gates = index * gate_count(a.cell) * a.width, state = index * a.width;
      RecurrenceGradients<T> g;
      g.output = from(present(out.hidden), state);
      g.last_hidden = from(present(out.last.hidden), state);
      g.last_cell = from(present(out.last.cell), state);
      g.input = from(input_gradient, gates);
      g.adds_to_input = adds_to_input;
      g.context = from(context.gradient.sum(), gates);
      g.weight = from(weight.gradient.sum(), gates * a.width);
      g.bias = from(bias.gradient.sum(), gates);
      g.first_hidden = from(first.hidden.gradient.sum(), state);
      g.first_cell = from(first.cell.gradient.sum(), state);
      recurrence_backward(device, a, g);
    }
  });
  return out;
}

template RecurrenceResult<float> recurrence(Graph<float>&, RecurrentCell, Direction, const Variable<float>&,
                                            const Variable<float>&, const Variable<float>&, const Variable<float>&,
                                            const RecurrentState<float>&, PackedOffsets);
template RecurrenceResult<double> recurrence(Graph<double>&, RecurrentCell, Direction, const Variable<double>&,
                                             const Variable<double>&, const Variable<double>&, const Variable<double>&,
                                             const RecurrentState<double>&, PackedOffsets);

}  // namespace heed
