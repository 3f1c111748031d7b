#pragma once

#include "heed/ops/recurrence.h"

// The steps of a recurrent layer, as the kernels of a cell need them: which rows of which array a step reads and
// writes. This is the same on every device.
namespace heed {

/// Returns the parts of step t that forward and backward pass share.
template <class T>
CellStep<T> step_of(const RecurrenceArrays<T>& a, std::int64_t t) {
  CellStep<T> step;
  step.cell = a.cell;
  step.rows = a.order.rows(t);
  step.width = a.width;
  step.tokens = a.order.tokens + a.order.begins[t];
  step.sequences = a.order.sorted;
  step.gates_stride = a.gates_stride;
  step.output_stride = a.state_stride;
  return step;
}

/// Returns the row of `cells` at which the states after step t begin: -1 stands for the first states.
template <class T>
std::int64_t cell_row(const RecurrenceArrays<T>& a, std::int64_t t) {
  return t < 0 ? 0 : a.order.sequences + a.order.begins[t];
}

/// Returns the part of a forward step that is the same in training and inference.
template <class T>
CellForward<T> forward_step(const RecurrenceArrays<T>& a, std::int64_t t) {
  CellForward<T> step{step_of(a, t)};
  step.input = a.input;
  step.context = a.context;
  step.bias = a.bias;
  step.output = a.output;
  return step;
}

/// Returns step t of the forward pass in training. The product lies in the memory of the saved gates, and the state
/// after the step becomes the state before the next one.
template <class T>
CellForward<T> training_step(const RecurrenceArrays<T>& a, std::int64_t t) {
  CellForward<T> step = forward_step(a, t);
  step.hidden = a.hidden + a.order.begins[t] * a.width;
  step.product_stride = kSavedGates * a.width;
  step.product = step.saved = a.gates + a.order.begins[t] * step.product_stride;
  step.next = a.hidden + a.order.begins[t + 1] * a.width;
  step.next_rows = a.order.rows(t + 1);
  if (a.cell == RecurrentCell::lstm) {
    step.cell_before = a.cells + cell_row(a, t - 1) * a.width;
    step.cell_after = a.cells + cell_row(a, t) * a.width;
  }
  return step;
}

/// Returns step t in inference. The state after the step replaces the states `hidden` and `cell` [sequences, D];
/// `product` [sequences, G D] is h Wh^T.
template <class T>
CellForward<T> inference_step(const RecurrenceArrays<T>& a, std::int64_t t, T* hidden, T* cell, const T* product) {
  CellForward<T> step = forward_step(a, t);
  step.hidden = step.next = hidden;
  step.next_rows = step.rows;
  step.product = product;
  step.product_stride = gate_count(a.cell) * a.width;
  step.cell_before = step.cell_after = cell;
  return step;
}

/// The gradient of the hidden state after a step, [sequences, D]. It is the sum of up to three parts: the gradient of
/// the layer's output; `product`, the gradient that flows back through the product h Wh^T of the next step; and
/// `state`, the rest. `state` begins as the gradient of the last state; for a GRU it then also has the part dh' z,
/// which does not flow through that product. For an LSTM, `product` and `state` are the same memory.
template <class T>
struct StateGradient {
  T *state = nullptr, *product = nullptr;
  T* cell = nullptr;  ///< the gradient of c of an LSTM
};

/// Returns step t of the backward pass. The gradient of the product replaces the saved gates.
template <class T>
CellBackward<T> backward_step(const RecurrenceArrays<T>& a, const RecurrenceGradients<T>& g,
                              const StateGradient<T>& gradient, std::int64_t t) {
  CellBackward<T> step{step_of(a, t)};
  step.hidden = a.hidden + a.order.begins[t] * a.width;
  if (a.cell == RecurrentCell::lstm) {
    step.cell_before = a.cells + cell_row(a, t - 1) * a.width;
    step.cell_after = a.cells + cell_row(a, t) * a.width;
  } else {
    step.next_gradient = gradient.product;
    step.next_rows = a.order.rows(t + 1);
  }
  step.product_stride = kSavedGates * a.width;
  step.saved = step.product_gradient = a.gates + a.order.begins[t] * step.product_stride;
  step.adds_to_product = false;
  step.output_gradient = g.output;
  step.hidden_gradient = gradient.state;
  step.cell_gradient = gradient.cell;
  step.input_gradient = g.input;
  step.adds_to_input = g.adds_to_input;
  step.context_gradient = g.context;
  step.bias_gradient = g.bias;
  return step;
}

}  // namespace heed
