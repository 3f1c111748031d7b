#include "heed/ops/recurrent_cell.h"

#include "heed/ops/activation_cuda-inl.h"
#include "heed/ops/column_sum_cuda-inl.h"
#include "heed/tensor/cuda_language.h"

namespace heed {
namespace {

/// Returns x[i] where the array of indices x is not null, otherwise i.
__device__ std::int64_t index_of(const std::int32_t* x, std::int64_t i) {
  return x ? x[i] : i;
}

/// Each thread computes a column of a row: it alone reads and writes the column's part of each gate, so that arrays may
/// lie in the same memory.
template <RecurrentCell C, class T>
__global__ void forward_kernel(CellForward<T> s) {
  const std::int64_t n = s.width;
  for_each_element(s.rows * n, [&](std::int64_t at) {
    const std::int64_t r = at / n, i = at % n, token = index_of(s.tokens, r);
    const T* const input = s.input + token * s.gates_stride + i;
    const T* const context = s.context ? s.context + index_of(s.sequences, r) * s.gates_stride + i : nullptr;
    const T* const product = s.product + r * s.product_stride + i;
    T* const saved = s.saved ? s.saved + r * kSavedGates * n + i : nullptr;
    const auto from_input = [&](std::int64_t gate) {
      return context ? input[gate * n] + context[gate * n] : input[gate * n];
    };
    const auto from_hidden = [&](std::int64_t gate) {
      return s.bias ? product[gate * n] + s.bias[gate * n + i] : product[gate * n];
    };
    const auto both = [&](std::int64_t gate) { return from_input(gate) + from_hidden(gate); };
    const auto save = [&](T a, T b, T c, T d) {
      if (!saved) return;
      saved[0] = a;
      saved[n] = b;
      saved[2 * n] = c;
      saved[3 * n] = d;
    };
    T h = 0;
    if constexpr (C == RecurrentCell::gru) {
      const T reset = sigmoid(both(0)), update = sigmoid(both(1)), from = from_hidden(2);
      const T candidate = std::tanh(from_input(2) + reset * from);
      h = candidate + update * (s.hidden[at] - candidate);
      save(reset, update, from, candidate);
    } else {
      const T in = sigmoid(both(0)), forget = sigmoid(both(1)), candidate = std::tanh(both(2)), exit = sigmoid(both(3));
      const T c = forget * s.cell_before[at] + in * candidate;
      h = exit * std::tanh(c);
      s.cell_after[at] = c;
      save(in, forget, candidate, exit);
    }
    s.output[token * s.output_stride + i] = h;
    if (r < s.next_rows) s.next[at] = h;
  });
}

/// Each thread computes the gradients of a column of a row (see forward_kernel()). `for_bias` [R, G D], where not null,
/// receives dw, whose sum over the rows is the gradient of the bias.
template <RecurrentCell C, class T>
__global__ void backward_kernel(CellBackward<T> s, T* for_bias) {
  const std::int64_t n = s.width;
  for_each_element(s.rows * n, [&](std::int64_t at) {
    const std::int64_t r = at / n, i = at % n, token = index_of(s.tokens, r);
    T* const dinput = s.input_gradient ? s.input_gradient + token * s.gates_stride + i : nullptr;
    T* const dcontext =
        s.context_gradient ? s.context_gradient + index_of(s.sequences, r) * s.gates_stride + i : nullptr;
    T* const dproduct = s.product_gradient + r * s.product_stride + i;
    const auto emit = [&](std::int64_t gate, T du, T dw) {
      if (dinput) dinput[gate * n] = s.adds_to_input ? dinput[gate * n] + du : du;
      if (dcontext) dcontext[gate * n] += du;
      if (for_bias) for_bias[(r * gate_count(C) + gate) * n + i] = dw;
      dproduct[gate * n] = s.adds_to_product ? dproduct[gate * n] + dw : dw;
    };
    // Returns v g (1 - g), the gradient before a sigmoid with the result g.
    const auto through_sigmoid = [](T v, T g) { return v * (g - g * g); };
    // Returns v (1 - g^2), the gradient before a tanh with the result g.
    const auto through_tanh = [](T v, T g) { return v * (T(1) - g * g); };
    const T* const saved = s.saved + r * kSavedGates * n + i;
    const T first = saved[0], second = saved[n], third = saved[2 * n], fourth = saved[3 * n];
    T dh = s.hidden_gradient[at];
    if (s.output_gradient) dh += s.output_gradient[token * s.output_stride + i];
    if (r < s.next_rows) dh += s.next_gradient[at];
    if constexpr (C == RecurrentCell::gru) {
      const T reset = first, update = second, from = third, candidate = fourth;
      const T dn = through_tanh(dh * (T(1) - update), candidate);
      const T dz = through_sigmoid(dh * (s.hidden[at] - candidate), update);
      const T dr = through_sigmoid(dn * from, reset);
      emit(0, dr, dr);
      emit(1, dz, dz);
      emit(2, dn, dn * reset);
      s.hidden_gradient[at] = dh * update;
    } else {
      const T in = first, forget = second, candidate = third, exit = fourth, squashed = std::tanh(s.cell_after[at]);
      const T dc = s.cell_gradient[at] + through_tanh(dh * exit, squashed);
      const T di = through_sigmoid(dc * candidate, in), df = through_sigmoid(dc * s.cell_before[at], forget);
      const T dg = through_tanh(dc * in, candidate), dexit = through_sigmoid(dh * squashed, exit);
      emit(0, di, di);
      emit(1, df, df);
      emit(2, dg, dg);
      emit(3, dexit, dexit);
      s.cell_gradient[at] = dc * forget;
    }
  });
}

}  // namespace

template <class T>
void cell_forward(CudaContext& device, const CellForward<T>& step) {
  const auto kernel =
      step.cell == RecurrentCell::gru ? forward_kernel<RecurrentCell::gru, T> : forward_kernel<RecurrentCell::lstm, T>;
  launch(device, shape_for_elements(step.rows * step.width), kernel, step);
}

template <class T>
void cell_backward(CudaContext& device, const CellBackward<T>& step) {
  const ArenaScope scope(device.arena);
  const std::int64_t gates = gate_count(step.cell) * step.width;
  T* const for_bias = step.bias_gradient ? device.arena.template tensor<T>({step.rows, gates}).data() : nullptr;
  const auto kernel = step.cell == RecurrentCell::gru ? backward_kernel<RecurrentCell::gru, T>
                                                      : backward_kernel<RecurrentCell::lstm, T>;
  launch(device, shape_for_elements(step.rows * step.width), kernel, step, for_bias);
  if (for_bias) add_column_sums<T>(device, for_bias, step.rows, gates, gates, step.bias_gradient);
}

template void cell_forward(CudaContext&, const CellForward<float>&);
template void cell_forward(CudaContext&, const CellForward<double>&);
template void cell_backward(CudaContext&, const CellBackward<float>&);
template void cell_backward(CudaContext&, const CellBackward<double>&);

}  // namespace heed
