#include "heed/ops/recurrent_cell.h"

#include "heed/ops/arithmetic.h"
#include "heed/ops/check.h"

namespace heed {
namespace {

/// Adds `from` to the gradient `to`, or overwrites an empty gradient. An absent gradient is skipped.
template <class T, class Context>
void add_to(Context& device, Tensor<T> from, const Gradient<T>& to) {
  if (!to) return;
  const T beta = to.empty() ? T(0) : T(1);
  scale_into(device, from, T(1), beta, to.begin_writing());
}

}  // namespace

template <class T>
RecurrentState<T> recurrent_cell(Graph<T>& graph, RecurrentCell cell, const Variable<T>& input,
                                 const Variable<T>& context, const Variable<T>& hidden, const Variable<T>& bias,
                                 const RecurrentState<T>& state) {
  const bool lstm = cell == RecurrentCell::lstm;
  const std::int64_t rows = state.hidden.value.rows(), width = state.hidden.value.columns();
  const std::int64_t gates = gate_count(cell) * width;
  check_shape("recurrent_cell", "input", input.shape(), {rows, gates});
  check_shape("recurrent_cell", "hidden", hidden.shape(), {rows, gates});
  if (context) check_shape("recurrent_cell", "context", context.shape(), {rows, gates});
  if (bias) check_shape("recurrent_cell", "bias", bias.shape(), {gates});
  if (lstm) check_shape("recurrent_cell", "state.cell", state.cell.shape(), state.hidden.shape());
  const RecurrentState<T> next{graph.result({rows, width}), lstm ? graph.result({rows, width}) : Variable<T>()};
  CellForward<T> step;
  step.cell = cell;
  step.rows = rows;
  step.width = width;
  step.gates_stride = step.product_stride = gates;
  step.output_stride = width;
  step.hidden = state.hidden.value.data();
  step.cell_before = state.cell.value.data();
  step.input = input.value.data();
  step.context = context.value.data();
  step.product = hidden.value.data();
  step.bias = bias.value.data();
  step.output = next.hidden.value.data();
  step.cell_after = next.cell.value.data();
  if (graph.recording()) step.saved = graph.arena().template tensor<T>({rows, kSavedGates * width}).data();
  graph.run([&](auto& device) { cell_forward(device, step); });
  graph.record([step, gates, input, context, hidden, bias, state, next](auto& device) {
    const ArenaScope scope(device.arena);
    CellBackward<T> back{static_cast<const CellStep<T>&>(step)};
    back.saved = step.saved;
    back.cell_after = step.cell_after;
    back.hidden_gradient = next.hidden.gradient.sum().data();
    back.cell_gradient = next.cell.gradient.sum().data();
    back.adds_to_input = !input.gradient.empty();
    back.input_gradient = input.gradient.begin_writing().data();
    back.adds_to_product = !hidden.gradient.empty();
    back.product_gradient = hidden.gradient.begin_writing().data();
    if (!back.product_gradient) back.product_gradient = device.arena.template tensor<T>({step.rows, gates}).data();
    back.product_stride = gates;
    back.context_gradient = context.gradient.sum().data();
    back.bias_gradient = bias.gradient.sum().data();
    cell_backward(device, back);
    // An LSTM reads h only by way of the product.
    if (next.cell)
      add_to(device, next.cell.gradient.sum(), state.cell.gradient);
    else
      add_to(device, next.hidden.gradient.sum(), state.hidden.gradient);
  });
  return next;
}

template RecurrentState<float> recurrent_cell(Graph<float>&, RecurrentCell, const Variable<float>&,
                                              const Variable<float>&, const Variable<float>&, const Variable<float>&,
                                              const RecurrentState<float>&);
template RecurrentState<double> recurrent_cell(Graph<double>&, RecurrentCell, const Variable<double>&,
                                               const Variable<double>&, const Variable<double>&,
                                               const Variable<double>&, const RecurrentState<double>&);

}  // namespace heed
