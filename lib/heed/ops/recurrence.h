// A recurrent layer over a packed batch of sequences of different lengths.
//
// The problem: the steps of a sequence wait for each other, and a product with one row at a time would read the whole
// weight for each token. The idea: all sequences of the batch take their steps together, so that a step is one product
// with a row for each sequence that has not ended. The sequences are sorted by length, the longest first. The sequences
// that are still running are then the first rows of the states, and their number R_t falls from step to step.
//
// An example: three sequences of 2, 3 and 1 tokens lie one after the other in a packed batch, as the rows
//
//   a0 a1 | b0 b1 b2 | c0        The sorted order is b, a, c.
//
//   step   running   tokens       rows of `tokens` in time order (TimeOrder)
//   0      b a c     b0 a0 c0     2 0 5
//   1      b a       b1 a1        3 1
//   2      b         b2           4
//
// Backwards, as the second half of a bidirectional encoder reads, each sequence begins at its own end: step 0 takes
// b2, a1 and c0.
//
// In training, the gates and the states that each step reads are saved in time order, one row for each token. The
// backward pass takes the steps in reverse, with one product for each step. The gradient of the weight is one product
// over all steps at the end.
#pragma once

#include <cstdint>

#include "heed/ops/recurrent_cell.h"
#include "heed/tensor/packed.h"

namespace heed {

/// The directions in which a layer reads the sequences: from the first token to the last (`forward`), from the last to
/// the first (`backward`), or in both directions with a weight for each (`both`).
enum class Direction { forward, backward, both };

/// Returns the number W of directions in which a layer reads the sequences: 2 for `both`, otherwise 1.
constexpr std::int64_t direction_count(Direction direction) {
  return direction == Direction::both ? 2 : 1;
}

/// The results of a recurrent layer: the hidden states after all tokens and, for each sequence, the last state.
template <class T>
struct RecurrenceResult {
  Variable<T> hidden;      ///< h after each token [N, W D]
  RecurrentState<T> last;  ///< the state after the last step of each sequence [B, W D]
};

/// Runs a recurrent layer over a packed batch of B sequences with N tokens (see recurrent_cell.h for the formulas of
/// the cells, and PyTorch's nn.GRU and nn.LSTM). For Direction::both, columns 0 ... D - 1 of states and results are
/// those of the forward direction, and columns D ... 2 D - 1 those of the backward direction; the gates of input,
/// context, weight and bias are divided alike.
///
/// Shapes, with G = gate_count(cell) and W = direction_count(direction): input x Wx^T + bx [N, W G D]; context
/// [B, W G D] or absent, which is added to the input gates of all tokens of a sequence; weight Wh [W G D, D]; bias bh
/// [W G D] or absent; first [B, W D], absent states are zeros. A sequence without tokens ends in its first state.
///
/// In inference (a graph that does not record) a sequence's results do not depend on the other sequences, bit for bit,
/// in any precision, and are the same as those of a linear layer without bias and a recurrent_cell() for each step.
/// Training is in float32 or bfloat16; sums have a fixed order.
/// Saved for the backward pass, for each token and direction: the gates [4 D], the state before [D], and c of an LSTM
/// [D]. Backward: the gradients of the cell (see recurrent_cell()), step by step; dh += dw Wh after each step, and at
/// the end dWh += sum over all steps of dw^T h.
template <class T>
RecurrenceResult<T> recurrence(Graph<T>& graph, RecurrentCell cell, Direction direction, const Variable<T>& input,
                               const Variable<T>& context, const Variable<T>& weight, const Variable<T>& bias,
                               const RecurrentState<T>& first, PackedOffsets packed);

/// The tokens of a packed batch in the order of the steps: first the first token of each sequence, longest sequence
/// first, then the second tokens, and so on.
struct TimeOrder {
  std::int64_t sequences = 0, steps = 0;
  const std::int32_t* sorted = nullptr;  ///< [sequences]: the sequences, by falling length
  const std::int32_t* begins = nullptr;  ///< [steps + 1]: the first row of each step
  const std::int32_t* tokens = nullptr;  ///< [begins[steps]]: the token (row of the packed batch) of each row

  /// Returns the number of sequences that take step t, 0 where t is the number of steps.
  std::int64_t rows(std::int64_t t) const { return t < steps ? begins[t + 1] - begins[t] : 0; }
};
/// Sorts the tokens of a packed batch, in memory of `arena`, an arena of the host. With `backward`, each sequence
/// begins at its last token.
TimeOrder time_order(Arena& arena, PackedOffsets packed, bool backward);

/// One direction of a recurrent layer over a batch. The pointers point to the columns of this direction; the strides
/// are those of the whole matrices. Pointers that may be null say so. The time order is in the memory of the host.
template <class T>
struct RecurrenceArrays {
  RecurrentCell cell = RecurrentCell::gru;
  TimeOrder order;
  std::int64_t width = 0;                                  ///< D
  std::int64_t gates_stride = 0;                           ///< elements from row to row of input and context: W G D
  std::int64_t state_stride = 0;                           ///< elements from row to row of states and outputs: W D
  const T *input = nullptr, *context = nullptr;            ///< the context may be null
  Tensor<T> weight;                                        ///< Wh of this direction [G D, D]
  const T* bias = nullptr;                                 ///< may be null
  const T *first_hidden = nullptr, *first_cell = nullptr;  ///< may be null: zeros
  T *output = nullptr, *last_hidden = nullptr, *last_cell = nullptr;
  T* gates = nullptr;   ///< saved: [N, 4 D], in time order
  T* hidden = nullptr;  ///< saved: the hidden state before each token [N, D], in time order
  T* cells = nullptr;  ///< saved: c of an LSTM [B + N, D]: the first states, sorted, and c' of each token in time order
};

/// Computes one direction of a recurrent layer in training.
template <class T>
void recurrence_forward(CpuContext& device, const RecurrenceArrays<T>& arrays);
template <class T>
void recurrence_forward(CudaContext& device, const RecurrenceArrays<T>& arrays);
/// Computes one direction of a recurrent layer in inference; `gates`, `hidden` and `cells` are not used. `packed`, if
/// not null, keeps the packed weight; a GPU packs none.
template <class T>
void recurrence_inference(CpuContext& device, PackedParameters<T>* packed, const RecurrenceArrays<T>& arrays);
template <class T>
void recurrence_inference(CudaContext& device, PackedParameters<T>* packed, const RecurrenceArrays<T>& arrays);

/// The gradients of one direction of a recurrent layer; each may be null. The pointers point to the columns of this
/// direction.
template <class T>
struct RecurrenceGradients {
  const T *output = nullptr, *last_hidden = nullptr, *last_cell = nullptr;
  T *input = nullptr, *context = nullptr, *weight = nullptr, *bias = nullptr, *first_hidden = nullptr,
    *first_cell = nullptr;
  bool adds_to_input = true;  ///< whether the gradient of the input is added to, or overwritten
};

/// Computes the gradients of one direction of a recurrent layer. Overwrites the saved gates.
template <class T>
void recurrence_backward(CpuContext& device, const RecurrenceArrays<T>& arrays,
                         const RecurrenceGradients<T>& gradients);
template <class T>
void recurrence_backward(CudaContext& device, const RecurrenceArrays<T>& arrays,
                         const RecurrenceGradients<T>& gradients);

}  // namespace heed
