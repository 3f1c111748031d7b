#include "heed/ops/recurrence.h"

#include <algorithm>
#include <optional>

#include "heed/ops/gemm/gemm.h"
#include "heed/ops/gemm/gemm_rows.h"
#include "heed/ops/gemm/prepared_weights.h"
#include "heed/ops/packed_linear.h"
#include "heed/ops/recurrence_steps.h"

namespace heed {
namespace {

/// A weight that multiplies the rows of one step after the other, in training. The weight is prepared once for all
/// steps: in panels for float32 (gemm_rows), because a BLAS library would rearrange the weight in each call, which
/// takes half as long as the product with the few rows of a step; as right operand for bfloat16.
template <class T>
class StepWeight {
 public:
  /// Prepares a matrix M [k, n] or, with `transposed`, the transpose of a matrix M [n, k], for products y = x M or
  /// y = x M^T. The memory comes from the device's arena.
  StepWeight(CpuContext& device, std::int64_t k, std::int64_t n, const T* matrix, bool transposed)
      : device_(device), k_(k), n_(n) {
    if (device.precision == Precision::bfloat16) {
      rounded_ = prepare_weight(device, k, n, GemmOperand<T>{matrix, transposed ? k : n, transposed});
      return;
    }
    T* const panels = device.arena.tensor<T>({Panels<T>::size(n, k)}).data();
    if (transposed)
      pack_panels(n, k, matrix, k, panels);
    else
      pack_transposed_panels(n, k, matrix, n, panels);
    panels_.data = panels;
  }

  /// Computes the product of `rows` rows x, with strides in elements.
  void multiply(std::int64_t rows, const T* x, std::int64_t x_stride, T* y, std::int64_t y_stride) const {
    if (rounded_)
      gemm(device_, rows, T(1), GemmOperand<T>{x, x_stride}, *rounded_, T(0), y, y_stride);
    else
      gemm_rows(rows, n_, k_, x, x_stride, panels_, nullptr, y, y_stride);
  }

 private:
  CpuContext& device_;
  std::int64_t k_, n_;
  std::optional<RightOperand<T>> rounded_;
  Panels<T> panels_;
};

/// Copies rows of D elements: row i of `to` (stride D) is row indices[i] of `from`, or zeros where `from` is null.
template <class T>
void gather(std::int64_t rows, std::int64_t width, const std::int32_t* indices, const T* from, std::int64_t stride,
            T* to) {
  for (std::int64_t i = 0; i < rows; ++i)
    if (from)
      std::copy_n(from + indices[i] * stride, width, to + i * width);
    else
      std::fill_n(to + i * width, width, T(0));
}

/// Adds row i of `from` (stride D) to row indices[i] of `to`. A null pointer is skipped.
template <class T>
void scatter_add(std::int64_t rows, std::int64_t width, const std::int32_t* indices, const T* from, T* to,
                 std::int64_t stride) {
  if (!to) return;
  for (std::int64_t i = 0; i < rows; ++i)
    for (std::int64_t j = 0; j < width; ++j) to[indices[i] * stride + j] += from[i * width + j];
}

/// Copies the last state of each sequence to `last_hidden` and `last_cell`. cell_of(i, t) returns the address of c
/// after step t of the sequence sorted[i], an LSTM's; t is -1 for a sequence without tokens.
template <class T, class CellOf>
void copy_last(const RecurrenceArrays<T>& a, CellOf cell_of) {
  for (std::int64_t t = a.order.steps - 1; t >= -1; --t) {
    const std::int64_t end = t < 0 ? a.order.sequences : a.order.rows(t);
    for (std::int64_t i = a.order.rows(t + 1); i < end; ++i) {
      const std::int64_t at = a.order.sorted[i] * a.state_stride;
      if (t >= 0)
        std::copy_n(a.output + a.order.tokens[a.order.begins[t] + i] * a.state_stride, a.width, a.last_hidden + at);
      else
        gather(1, a.width, a.order.sorted + i, a.first_hidden, a.state_stride, a.last_hidden + at);
      if (a.last_cell) std::copy_n(cell_of(i, t), a.width, a.last_cell + at);
    }
  }
}

}  // namespace

template <class T>
void recurrence_forward(CpuContext& device, const RecurrenceArrays<T>& a) {
  const ArenaScope scope(device.arena);
  const std::int64_t n = a.width, gates = gate_count(a.cell) * n;
  const bool lstm = a.cell == RecurrentCell::lstm;
  const StepWeight<T> weight(device, n, gates, a.weight.data(), true);
  gather(a.order.rows(0), n, a.order.sorted, a.first_hidden, a.state_stride, a.hidden);
  if (lstm) gather(a.order.sequences, n, a.order.sorted, a.first_cell, a.state_stride, a.cells);
  for (std::int64_t t = 0; t < a.order.steps; ++t) {
    const CellForward<T> step = training_step(a, t);
    if (t > 0 || a.first_hidden)
      weight.multiply(step.rows, step.hidden, n, step.saved, step.product_stride);
    else
      std::fill_n(step.saved, step.rows * step.product_stride, T(0));  // the product with zeros
    cell_forward(device, step);
  }
  copy_last(a, [&](std::int64_t i, std::int64_t t) { return a.cells + (cell_row(a, t) + i) * n; });
}

template <class T>
void recurrence_backward(CpuContext& device, const RecurrenceArrays<T>& a, const RecurrenceGradients<T>& g) {
  const ArenaScope scope(device.arena);
  const std::int64_t n = a.width, gates = gate_count(a.cell) * n, saved_stride = kSavedGates * n;
  const bool lstm = a.cell == RecurrentCell::lstm;
  const StepWeight<T> weight(device, gates, n, a.weight.data(), false);
  const auto states = [&] { return device.arena.tensor<T>({a.order.sequences, n}).data(); };
  StateGradient<T> gradient{.state = states()};
  gradient.product = lstm ? gradient.state : states();
  if (lstm) gradient.cell = states();
  gather(a.order.sequences, n, a.order.sorted, g.last_hidden, a.state_stride, gradient.state);
  if (lstm) gather(a.order.sequences, n, a.order.sorted, g.last_cell, a.state_stride, gradient.cell);
  for (std::int64_t t = a.order.steps - 1; t >= 0; --t) {
    const CellBackward<T> step = backward_step(a, g, gradient, t);
    cell_backward(device, step);
    if (t > 0 || g.first_hidden) weight.multiply(step.rows, step.product_gradient, saved_stride, gradient.product, n);
  }
  scatter_add(a.order.sequences, n, a.order.sorted, gradient.state, g.first_hidden, a.state_stride);
  if (!lstm) scatter_add(a.order.rows(0), n, a.order.sorted, gradient.product, g.first_hidden, a.state_stride);
  if (lstm) scatter_add(a.order.sequences, n, a.order.sorted, gradient.cell, g.first_cell, a.state_stride);
  // Without first states, the states before the first step are zeros and add nothing to the gradient of the weight.
  const std::int64_t begin = a.first_hidden ? 0 : a.order.rows(0), rows = a.order.begins[a.order.steps] - begin;
  if (g.weight && rows > 0)
    gemm(device, gates, n, rows, T(1), GemmOperand<T>{a.gates + begin * saved_stride, saved_stride, true},
         GemmOperand<T>{a.hidden + begin * n, n}, T(1), g.weight, n);
}

template <class T>
void recurrence_inference(CpuContext& device, PackedParameters<T>* packed, const RecurrenceArrays<T>& a) {
  const ArenaScope scope(device.arena);
  const std::int64_t n = a.width, gates = gate_count(a.cell) * n;
  const auto states = [&](const T* first) {
    T* const out = device.arena.template tensor<T>({a.order.sequences, n}).data();
    gather(a.order.sequences, n, a.order.sorted, first, a.state_stride, out);
    return out;
  };
  T *const hidden = states(a.first_hidden), *const cell =
                                                a.cell == RecurrentCell::lstm ? states(a.first_cell) : nullptr;
  const auto product = device.arena.template tensor<T>({a.order.rows(0), gates});
  std::optional<PackedWeight<T>> weight;
  for (std::int64_t t = 0; t < a.order.steps; ++t) {
    const CellForward<T> step = inference_step(a, t, hidden, cell, static_cast<const T*>(product.data()));
    const Tensor<T> rows(hidden, {step.rows, n});
    if (!weight) weight = LinearInput<T>(device, packed, rows).packed_weight(a.weight, {});
    {
      const ArenaScope step_scope(device.arena);
      LinearInput<T>(device, packed, rows).multiply(*weight, Tensor<T>(product.data(), {step.rows, gates}));
    }
    cell_forward(device, step);
  }
  copy_last(a, [&](std::int64_t rank, std::int64_t) { return cell + rank * n; });
}

template void recurrence_forward(CpuContext&, const RecurrenceArrays<float>&);
template void recurrence_forward(CpuContext&, const RecurrenceArrays<double>&);
template void recurrence_inference(CpuContext&, PackedParameters<float>*, const RecurrenceArrays<float>&);
template void recurrence_inference(CpuContext&, PackedParameters<double>*, const RecurrenceArrays<double>&);
template void recurrence_backward(CpuContext&, const RecurrenceArrays<float>&, const RecurrenceGradients<float>&);
template void recurrence_backward(CpuContext&, const RecurrenceArrays<double>&, const RecurrenceGradients<double>&);

}  // namespace heed
