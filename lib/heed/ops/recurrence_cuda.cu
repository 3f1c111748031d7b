#include "heed/ops/recurrence.h"

#include <vector>

#include "heed/ops/column_sum_cuda-inl.h"
#include "heed/ops/gemm/gemm.h"
#include "heed/ops/recurrence_steps.h"
#include "heed/tensor/cuda_language.h"

namespace heed {
namespace {

/// An operand of a product: element (i, k), of which the product sums over k, is data[i * row + k * column].
template <class T>
struct Operand {
  const T* data;
  std::int64_t row, column;
};

/// The depth of the parts of both operands that a block has in its shared memory at a time.
constexpr int kDepth = 16;
/// The threads of a block lie in a square of this many rows and columns.
constexpr int kSide = 16;
/// A block computes a square of this many rows and columns: few, because a step has few rows.
constexpr int kTile = 32;

/// Copies the part of an operand with the rows from `row` on and the columns from k on to shared memory, transposed:
/// kTile elements for each column, and one element between the columns, so that a warp writes into different banks.
/// Elements outside of the operand [rows, depth] are zeros.
template <class T>
__device__ void load_tile(Operand<T> x, std::int64_t row, std::int64_t rows, std::int64_t k, std::int64_t depth,
                          T* tile) {
  for (int e = static_cast<int>(threadIdx.x); e < kTile * kDepth; e += kSide * kSide) {
    // Neighbouring threads take neighbouring elements in memory.
    const int i = x.column == 1 ? e / kDepth : e % kTile, j = x.column == 1 ? e % kDepth : e / kTile;
    const bool inside = row + i < rows && k + j < depth;
    tile[j * (kTile + 1) + i] = inside ? x.data[(row + i) * x.row + (k + j) * x.column] : T(0);
  }
}

/// Computes the product of matrices c [m, n] = A B^T, or c += A B^T, for A [m, depth] and B [n, depth]. Each block
/// computes a square of kTile rows and columns, and each thread the elements of this square that lie kSide rows and
/// columns apart. An element is one sum in the order of k, whatever m and n are.
template <class T>
__global__ void product_kernel(std::int64_t m, std::int64_t n, std::int64_t depth, Operand<T> a, Operand<T> b, bool add,
                               T* c, std::int64_t c_stride) {
  constexpr int kEach = kTile / kSide;
  T* const a_tile = shared_memory<T>();
  T* const b_tile = a_tile + kDepth * (kTile + 1);
  const std::int64_t tiles = (n + kTile - 1) / kTile;
  const std::int64_t row = blockIdx.x / tiles * kTile, column = blockIdx.x % tiles * kTile;
  const int y = static_cast<int>(threadIdx.x) / kSide, x = static_cast<int>(threadIdx.x) % kSide;
  T sums[kEach][kEach] = {};
  for (std::int64_t k = 0; k < depth; k += kDepth) {
    load_tile(a, row, m, k, depth, a_tile);
    load_tile(b, column, n, k, depth, b_tile);
    __syncthreads();
    for (int j = 0; j < kDepth; ++j) {
      const T *const from_a = a_tile + j * (kTile + 1) + y, *const from_b = b_tile + j * (kTile + 1) + x;
      for (int p = 0; p < kEach; ++p)
        for (int q = 0; q < kEach; ++q) sums[p][q] += from_a[p * kSide] * from_b[q * kSide];
    }
    __syncthreads();
  }
  for (int p = 0; p < kEach; ++p)
    for (int q = 0; q < kEach; ++q) {
      const std::int64_t i = row + y + p * kSide, j = column + x + q * kSide;
      if (i >= m || j >= n) continue;
      T& to = c[i * c_stride + j];
      to = add ? to + sums[p][q] : sums[p][q];
    }
}

/// Computes c = A B^T, or c += A B^T (see product_kernel()), for one step: gemm() suits products of many rows.
template <class T>
void multiply(const CudaContext& device, std::int64_t m, std::int64_t n, std::int64_t depth, Operand<T> a, Operand<T> b,
              bool add, T* c, std::int64_t c_stride) {
  const std::int64_t blocks = (m + kTile - 1) / kTile * ((n + kTile - 1) / kTile);
  launch(device, {static_cast<unsigned>(blocks), kSide * kSide, 2 * kDepth * (kTile + 1) * sizeof(T)},
         product_kernel<T>, m, n, depth, a, b, add, c, c_stride);
}

/// Copies rows of D elements: row i of `to` (stride D) is row indices[i] of `from`, or zeros where `from` is null.
template <class T>
__global__ void gather_kernel(std::int64_t rows, std::int64_t width, const std::int32_t* indices, const T* from,
                              std::int64_t stride, T* to) {
  for_each_element(rows * width,
                   [&](std::int64_t i) { to[i] = from ? from[indices[i / width] * stride + i % width] : T(0); });
}

/// Adds row i of `from` (stride D) to row indices[i] of `to`.
template <class T>
__global__ void scatter_add_kernel(std::int64_t rows, std::int64_t width, const std::int32_t* indices, const T* from,
                                   T* to, std::int64_t stride) {
  for_each_element(rows * width, [&](std::int64_t i) { to[indices[i / width] * stride + i % width] += from[i]; });
}

template <class T>
void gather(const CudaContext& device, std::int64_t rows, std::int64_t width, const std::int32_t* indices,
            const T* from, std::int64_t stride, T* to) {
  launch(device, shape_for_elements(rows * width), gather_kernel<T>, rows, width, indices, from, stride, to);
}

/// Adds rows to other rows (see scatter_add_kernel()). A null `to` is skipped.
template <class T>
void scatter_add(const CudaContext& device, std::int64_t rows, std::int64_t width, const std::int32_t* indices,
                 const T* from, T* to, std::int64_t stride) {
  if (to)
    launch(device, shape_for_elements(rows * width), scatter_add_kernel<T>, rows, width, indices, from, to, stride);
}

/// Returns the arrays with the lists of sequences and tokens in the memory of the GPU; `begins` stays with the host.
template <class T>
RecurrenceArrays<T> with_uploaded_order(CudaContext& device, RecurrenceArrays<T> a) {
  const auto array = [&](const std::int32_t* host, std::int64_t size) {
    return upload(device, std::span<const std::int32_t>(host, static_cast<std::size_t>(size)));
  };
  a.order.sorted = array(a.order.sorted, a.order.sequences);
  a.order.tokens = array(a.order.tokens, a.order.begins[a.order.steps]);
  return a;
}

/// Copies the last state of each sequence to `last_hidden` and `last_cell`. last[i] is the last row, in time order, of
/// the sequence sorted[i], or -1 where the sequence has no tokens. Row i of `cells` is then the last c; with `saved`,
/// `cells` is laid out as in RecurrenceArrays instead.
template <class T>
__global__ void copy_last_kernel(RecurrenceArrays<T> a, const std::int32_t* last, const T* cells, bool saved) {
  for_each_element(a.order.sequences * a.width, [&](std::int64_t e) {
    const std::int64_t i = e / a.width, column = e % a.width, row = last[i];
    const std::int64_t at = a.order.sorted[i] * a.state_stride + column;
    if (row >= 0)
      a.last_hidden[at] = a.output[a.order.tokens[row] * a.state_stride + column];
    else
      a.last_hidden[at] = a.first_hidden ? a.first_hidden[at] : T(0);
    if (a.last_cell) a.last_cell[at] = cells[(saved && row >= 0 ? a.order.sequences + row : i) * a.width + column];
  });
}

/// Copies the last state of each sequence (see copy_last_kernel()). The order of `a` is uploaded.
template <class T>
void copy_last(CudaContext& device, const RecurrenceArrays<T>& a, const T* cells, bool saved) {
  std::vector<std::int32_t> last(static_cast<std::size_t>(a.order.sequences), -1);
  for (std::int64_t t = 0; t < a.order.steps; ++t)
    for (std::int64_t i = 0; i < a.order.rows(t); ++i)
      last[static_cast<std::size_t>(i)] = a.order.begins[t] + static_cast<std::int32_t>(i);
  RecurrenceArrays<T> of_gpu = a;
  of_gpu.order.begins = nullptr;  // is in the memory of the host
  launch(device, shape_for_elements(a.order.sequences * a.width), copy_last_kernel<T>, of_gpu,
         upload<std::int32_t>(device, last), cells, saved);
}

}  // namespace

template <class T>
void recurrence_forward(CudaContext& device, const RecurrenceArrays<T>& arrays) {
  const ArenaScope scope(device.arena);
  const RecurrenceArrays<T> a = with_uploaded_order(device, arrays);
  const std::int64_t n = a.width, gates = gate_count(a.cell) * n;
  gather(device, a.order.rows(0), n, a.order.sorted, a.first_hidden, a.state_stride, a.hidden);
  if (a.cell == RecurrentCell::lstm)
    gather(device, a.order.sequences, n, a.order.sorted, a.first_cell, a.state_stride, a.cells);
  const Operand<T> weight{a.weight.data(), n, 1};
  for (std::int64_t t = 0; t < a.order.steps; ++t) {
    const CellForward<T> step = training_step(a, t);
    multiply(device, step.rows, gates, n, Operand<T>{step.hidden, n, 1}, weight, false, step.saved,
             step.product_stride);
    cell_forward(device, step);
  }
  copy_last(device, a, static_cast<const T*>(a.cells), true);
}

template <class T>
void recurrence_backward(CudaContext& device, const RecurrenceArrays<T>& arrays, const RecurrenceGradients<T>& g) {
  const ArenaScope scope(device.arena);
  const RecurrenceArrays<T> a = with_uploaded_order(device, arrays);
  const std::int64_t n = a.width, gates = gate_count(a.cell) * n, saved_stride = kSavedGates * n;
  const bool lstm = a.cell == RecurrentCell::lstm;
  const auto states = [&] { return device.arena.template tensor<T>({a.order.sequences, n}).data(); };
  StateGradient<T> gradient{.state = states()};
  gradient.product = lstm ? gradient.state : states();
  if (lstm) gradient.cell = states();
  gather(device, a.order.sequences, n, a.order.sorted, g.last_hidden, a.state_stride, gradient.state);
  if (lstm) gather(device, a.order.sequences, n, a.order.sorted, g.last_cell, a.state_stride, gradient.cell);
  const Operand<T> weight{a.weight.data(), 1, n};
  for (std::int64_t t = a.order.steps - 1; t >= 0; --t) {
    CellBackward<T> step = backward_step(a, g, gradient, t);
    step.bias_gradient = nullptr;  // summed over all steps at the end
    cell_backward(device, step);
    if (t > 0 || g.first_hidden)
      multiply(device, step.rows, n, gates, Operand<T>{step.product_gradient, saved_stride, 1}, weight, false,
               gradient.product, n);
  }
  scatter_add(device, a.order.sequences, n, a.order.sorted, gradient.state, g.first_hidden, a.state_stride);
  if (!lstm) scatter_add(device, a.order.rows(0), n, a.order.sorted, gradient.product, g.first_hidden, a.state_stride);
  if (lstm) scatter_add(device, a.order.sequences, n, a.order.sorted, gradient.cell, g.first_cell, a.state_stride);
  const std::int64_t rows = a.order.begins[a.order.steps];
  if (g.bias) add_column_sums<T>(device, a.gates, rows, saved_stride, gates, g.bias);
  if (g.weight)
    gemm(device, gates, n, rows, T(1), GemmOperand<T>{a.gates, saved_stride, true}, GemmOperand<T>{a.hidden, n}, T(1),
         g.weight, n);
}

template <class T>
void recurrence_inference(CudaContext& device, PackedParameters<T>*, const RecurrenceArrays<T>& arrays) {
  const ArenaScope scope(device.arena);
  const RecurrenceArrays<T> a = with_uploaded_order(device, arrays);
  const std::int64_t n = a.width, gates = gate_count(a.cell) * n;
  const auto states = [&](const T* first) {
    T* const out = device.arena.template tensor<T>({a.order.sequences, n}).data();
    gather(device, a.order.sequences, n, a.order.sorted, first, a.state_stride, out);
    return out;
  };
  T* const hidden = states(a.first_hidden);
  T* const cell = a.cell == RecurrentCell::lstm ? states(a.first_cell) : nullptr;
  T* const product = device.arena.template tensor<T>({a.order.rows(0), gates}).data();
  for (std::int64_t t = 0; t < a.order.steps; ++t) {
    const CellForward<T> step = inference_step(a, t, hidden, cell, static_cast<const T*>(product));
    multiply(device, step.rows, gates, n, Operand<T>{hidden, n, 1}, Operand<T>{a.weight.data(), n, 1}, false, product,
             gates);
    cell_forward(device, step);
  }
  copy_last(device, a, static_cast<const T*>(cell), false);
}

#define HEED_INSTANTIATE(T)                                                                           \
  template void recurrence_forward(CudaContext&, const RecurrenceArrays<T>&);                         \
  template void recurrence_inference(CudaContext&, PackedParameters<T>*, const RecurrenceArrays<T>&); \
  template void recurrence_backward(CudaContext&, const RecurrenceArrays<T>&, const RecurrenceGradients<T>&);
HEED_INSTANTIATE(float)
HEED_INSTANTIATE(double)
#undef HEED_INSTANTIATE

}  // namespace heed
