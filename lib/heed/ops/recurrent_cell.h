// One step of a recurrent cell: a gated recurrent unit (GRU) or a long short-term memory (LSTM).
//
// The formulas, the order of the gates and the two biases are those of PyTorch's nn.GRU and nn.LSTM, so that weights
// can be copied from one to the other. Let x be the input of a step, h and c the state before the step, h' and c' the
// state after the step, and s the sigmoid function. D is the width of h and c. With
//
//   u = x Wx^T + bx + v     the input gates, where v is a fixed context's part, which may be absent
//   w = h Wh^T + bh         the hidden gates
//
// the cells compute, in blocks of D columns of u and w,
//
//   GRU (Cho et al. 2014; the variant in which r multiplies the product with h): gates r, z, n
//     r = s(u_r + w_r)   z = s(u_z + w_z)   n = tanh(u_n + r w_n)                          h' = (1 - z) n + z h
//   LSTM (Hochreiter and Schmidhuber 1997, with the forget gate of Gers et al. 2000): gates i, f, g, o
//     i = s(u_i + w_i)   f = s(u_f + w_f)   g = tanh(u_g + w_g)   o = s(u_o + w_o)   c' = f c + i g   h' = o tanh(c')
//
// The products x Wx^T + bx and h Wh^T are ordinary linear layers (ops/linear.h). The op recurrent_cell() does the rest:
// it adds the parts of the gates and computes h' and c'. A layer over whole sequences is the op recurrence()
// (ops/recurrence.h), whose kernels are the ones below.
#pragma once

#include <cstdint>

#include "heed/autograd/graph.h"

namespace heed {

/// The cells of recurrent layers: gated recurrent unit and long short-term memory.
enum class RecurrentCell { gru, lstm };

/// Returns the number of gates G of a cell, that is, of blocks of D columns that a product with D inputs yields.
constexpr std::int64_t gate_count(RecurrentCell cell) {
  return cell == RecurrentCell::gru ? 3 : 4;
}

/// The state of a recurrent layer for each of B sequences. An absent state means zeros.
template <class T>
struct RecurrentState {
  Variable<T> hidden = {};  ///< h [B, D]
  Variable<T> cell = {};    ///< c [B, D] of an LSTM; absent for a GRU
};

/// Computes one step of a cell for R rows: adds the parts of the gates, and returns the state after the step.
///
/// Shapes, with G = gate_count(cell): input x Wx^T + bx [R, G D], context [R, G D] or absent, hidden h Wh^T [R, G D],
/// bias bh [G D] or absent, state [R, D] -> state [R, D]. The state before the step must be present.
/// A row of the result does not depend on the other rows, bit for bit.
/// Saved for the backward pass: the gates, and w_n of a GRU, [R, 4 D] together; h; c and c' of an LSTM.
/// Backward: with dh' and, for an LSTM, dc' (to which dh' o (1 - tanh(c')^2) is added):
///   GRU:  dn = dh' (1 - z) (1 - n^2), dz = dh' (h - n) z (1 - z), dr = dn w_n r (1 - r); du = (dr, dz, dn),
///         dw = (dr, dz, r dn), dh = dh' z.
///   LSTM: di = dc' g i (1 - i), df = dc' c f (1 - f), dg = dc' i (1 - g^2), do = dh' tanh(c') o (1 - o);
///         du = dw = (di, df, dg, do), dc = dc' f.
/// The gradients of the input and of the context are du, that of `hidden` is dw, and that of the bias is the sum of dw
/// over the rows.
template <class T>
RecurrentState<T> recurrent_cell(Graph<T>& graph, RecurrentCell cell, const Variable<T>& input,
                                 const Variable<T>& context, const Variable<T>& hidden, const Variable<T>& bias,
                                 const RecurrentState<T>& state);

/// The number of blocks of D numbers that the forward kernel saves for each row: r, z, w_n and n, or i, f, g and o.
constexpr std::int64_t kSavedGates = 4;

/// The arrays that the forward and the backward kernel of a cell's step share, for `rows` rows. The rows of the states
/// and of the saved gates lie one after the other. The input gates and the output may lie in another order: row i takes
/// row tokens[i] of `input` and of `output` and row sequences[i] of `context`, or row i where an array of indices is
/// null. No index occurs twice in an array. All arrays are in the memory of the device, those of indices, too.
template <class T>
struct CellStep {
  RecurrentCell cell = RecurrentCell::gru;
  std::int64_t rows = 0, width = 0;         ///< R and D
  const std::int32_t* tokens = nullptr;     ///< the row of `input` and `output` for each row, or null
  const std::int32_t* sequences = nullptr;  ///< the row of `context` for each row, or null
  std::int64_t gates_stride = 0;            ///< elements from row to row of `input` and `context`
  std::int64_t output_stride = 0;           ///< elements from row to row of `output`
  const T* hidden = nullptr;                ///< h [R, D]
  const T* cell_before = nullptr;           ///< c [R, D] of an LSTM
};

/// A step of a cell, computed by cell_forward().
template <class T>
struct CellForward : CellStep<T> {
  const T *input = nullptr, *context = nullptr;  ///< u in two parts; the context may be null
  const T *product = nullptr, *bias = nullptr;   ///< w in two parts: h Wh^T [R, G D], and bh, which may be null
  std::int64_t product_stride = 0;               ///< elements from row to row of `product`
  T* output = nullptr;                           ///< h'
  T* cell_after = nullptr;                       ///< c' [R, D] of an LSTM; may be `cell_before`
  T* next = nullptr;                             ///< h' [next_rows, D] of the first rows; may be `hidden`
  std::int64_t next_rows = 0;
  T* saved = nullptr;  ///< [R, 4 D] for the backward pass, or null; may be `product`
};

/// The gradients of a cell's step, computed by cell_backward(). The gradients have the strides and the order of the
/// arrays that they belong to. dh' is the sum of three parts.
template <class T>
struct CellBackward : CellStep<T> {
  const T* saved = nullptr;            ///< what the forward kernel saved, [R, 4 D]
  const T* cell_after = nullptr;       ///< c' of an LSTM
  const T* output_gradient = nullptr;  ///< a part of dh', in the order of `tokens`, or null
  const T* next_gradient = nullptr;    ///< a part of dh' [next_rows, D] for the first rows
  std::int64_t next_rows = 0;
  T* hidden_gradient = nullptr;     ///< [R, D]: a part of dh' before the call; dh' z of a GRU afterwards
  T* cell_gradient = nullptr;       ///< [R, D] of an LSTM: dc' before the call, dc afterwards
  T* product_gradient = nullptr;    ///< dw [R, G D]; may be `saved`
  std::int64_t product_stride = 0;  ///< elements from row to row of `product_gradient`
  T *input_gradient = nullptr, *context_gradient = nullptr, *bias_gradient = nullptr;  ///< each may be null
  /// Whether the kernel adds du to the gradient of the input, and dw to that of the product, or overwrites it.
  bool adds_to_input = true, adds_to_product = true;
};

/// Computes a step of a cell: writes h', the state after the step, and what the backward pass needs.
template <class T>
void cell_forward(CpuContext& device, const CellForward<T>& step);
template <class T>
void cell_forward(CudaContext& device, const CellForward<T>& step);
/// Computes the gradients of a step of a cell.
template <class T>
void cell_backward(CpuContext& device, const CellBackward<T>& step);
template <class T>
void cell_backward(CudaContext& device, const CellBackward<T>& step);

}  // namespace heed
