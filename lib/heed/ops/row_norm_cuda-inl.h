// Layer normalisation and RMS normalisation of a row, in kernels of GPUs that have a block for each row (see
// shape_for_rows()). With the mean 0, both are the same formula, but for the mean of the gradient.
#pragma once

#include <cmath>

#include "heed/ops/column_sum_cuda-inl.h"
#include "heed/ops/row_norm.h"
#include "heed/tensor/cuda_language.h"

namespace heed {

/// Returns what the threads add up before normalise_row(): x, or x^2 for RMS normalisation.
template <class T>
__device__ __forceinline__ T norm_summand(RowNorm kind, T x) {
  return kind == RowNorm::rms ? x * x : x;
}

/// Normalises the row of this block: y = (x - mean) / sqrt(variance + epsilon) * scale + bias, or, for RMS
/// normalisation, y = x / sqrt(mean(x^2) + epsilon) * scale. `sum` is the sum of norm_summand(x) over the elements of
/// this thread. A null bias counts as zeros. Stores the mean (0 for RMS normalisation) and the inverse of the square
/// root in `statistics` [N, 2], and y rounded to bfloat16 in `rounded`, unless these are null. y may be x.
template <class T>
__device__ void normalise_row(RowNorm kind, const T* x, T sum, const T* scale, const T* bias, T epsilon, T* y,
                              Bfloat16* rounded, T* statistics, std::int64_t columns) {
  const std::int64_t begin = blockIdx.x * columns;
  sum = block_sum(sum, shared_memory<T>());
  T mean = 0, squares = sum;
  if (kind == RowNorm::layer) {
    mean = sum / static_cast<T>(columns);
    squares = 0;
    for_each_of_row(columns, [&](std::int64_t i) { squares += (x[i] - mean) * (x[i] - mean); });
    squares = block_sum(squares, shared_memory<T>());
  }
  const T inverse = 1 / std::sqrt(squares / static_cast<T>(columns) + epsilon);
  for_each_of_row(columns, [&](std::int64_t i) {
    const T result = (x[i] - mean) * inverse * scale[i - begin] + (bias ? bias[i - begin] : T(0));
    y[i] = result;
    if (rounded) rounded[i] = to_bfloat16(static_cast<float>(result));
  });
  if (!statistics || threadIdx.x != 0) return;
  statistics[2 * blockIdx.x] = mean;
  statistics[2 * blockIdx.x + 1] = inverse;
}

/// Computes the gradient of the row of this block, and passes it to emit(i, dx) for each element i. With z = (x - mean)
/// / deviation and g = dy scale: dx = (g - mean(g) - z mean(g z)) / deviation, without mean(g) for RMS normalisation.
template <class T, class Emit>
__device__ void normalise_row_backward(RowNorm kind, const T* x, const T* scale, const T* statistics, const T* dy,
                                       std::int64_t columns, const Emit& emit) {
  const std::int64_t begin = blockIdx.x * columns;
  const T mean = statistics[2 * blockIdx.x], inverse = statistics[2 * blockIdx.x + 1];
  T mean_g = 0, mean_gz = 0;
  for_each_of_row(columns, [&](std::int64_t i) {
    const T g = dy[i] * scale[i - begin];
    mean_g += g;
    mean_gz += g * (x[i] - mean) * inverse;
  });
  mean_g = kind == RowNorm::layer ? block_sum(mean_g, shared_memory<T>()) / static_cast<T>(columns) : T(0);
  mean_gz = block_sum(mean_gz, shared_memory<T>()) / static_cast<T>(columns);
  for_each_of_row(columns, [&](std::int64_t i) {
    const T z = (x[i] - mean) * inverse;
    emit(i, (dy[i] * scale[i - begin] - mean_g - z * mean_gz) * inverse);
  });
}

/// The summands of the gradients of scale and bias: dy z and dy.
template <class T>
struct RowNormSummands {
  const T *x, *statistics, *dy;
  std::int64_t columns;

  __device__ std::array<T, 2> operator()(std::int64_t row, std::int64_t column) const {
    const T g = dy[row * columns + column];
    return {g * (x[row * columns + column] - statistics[2 * row]) * statistics[2 * row + 1], g};
  }
};

/// Adds the gradients of scale and bias to dscale and dbias; an empty tensor is skipped.
template <class T>
void add_row_norm_gradients(CudaContext& device, Tensor<T> x, Tensor<T> statistics, Tensor<T> dy, Tensor<T> dscale,
                            Tensor<T> dbias) {
  if (!dscale && !dbias) return;
  column_sums(device, x.rows(), x.columns(), RowNormSummands<T>{x.data(), statistics.data(), dy.data(), x.columns()}, 1,
              1, std::array<T*, 2>{dscale.data(), dbias.data()});
}

}  // namespace heed
