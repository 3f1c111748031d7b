#pragma once

#include "heed/autograd/graph.h"

namespace heed {

/// The running averages that batch_norm() reads in inference, and the sums from which training moves these averages.
template <class T>
struct RunningStatistics {
  Tensor<T> mean, variance;  ///< [D]; read in inference only
  /// [D + 1]; in training, N times the mean and N times the unbiased variance of each column are added to the first D
  /// elements, and N is added to the last. A single row has no unbiased variance and adds nothing to variance_sum.
  Tensor<T> mean_sum, variance_sum;
};

/// Computes batch normalisation (Ioffe and Szegedy 2015): y = (x - mean) / sqrt(variance + epsilon) * scale + bias for
/// each column. In training, mean and (biased) variance are those of the column over the N rows of x; in inference
/// they are the running averages, so that a row does not depend on the other rows.
///
/// Shapes: x [N, D], scale [D], bias [D] -> y [N, D].
/// Saved for the backward pass: x, and the mean and 1 / sqrt(variance + epsilon) of each column.
/// Backward, with z = (x - mean) / sqrt(variance + epsilon) and means over the rows: dx += scale / sqrt(variance +
/// epsilon) * (dy - mean(dy) - z mean(dy z)), dscale += sum of dy z, dbias += sum of dy.
template <class T>
Variable<T> batch_norm(Graph<T>& graph, const Variable<T>& x, const Variable<T>& scale, const Variable<T>& bias,
                       const RunningStatistics<T>& running, double epsilon);

/// Computes the mean and the biased variance, [D] each, of the columns of x [N, D]; N is above 0.
template <class T>
void column_statistics(CpuContext& device, Tensor<T> x, Tensor<T> mean, Tensor<T> variance);
template <class T>
void column_statistics(CudaContext& device, Tensor<T> x, Tensor<T> mean, Tensor<T> variance);

/// Computes y = (x - mean) * inverse * scale + bias for each column. y may be the memory of x.
template <class T>
void batch_norm_forward(CpuContext& device, Tensor<T> x, Tensor<T> mean, Tensor<T> inverse, Tensor<T> scale,
                        Tensor<T> bias, Tensor<T> y);
template <class T>
void batch_norm_forward(CudaContext& device, Tensor<T> x, Tensor<T> mean, Tensor<T> inverse, Tensor<T> scale,
                        Tensor<T> bias, Tensor<T> y);

/// Computes the backward pass of batch_norm(), where `inverse` is 1 / sqrt(variance + epsilon): adds the gradients to
/// dx, dscale and dbias; an empty gradient tensor is skipped.
template <class T>
void batch_norm_backward(CpuContext& device, Tensor<T> x, Tensor<T> mean, Tensor<T> inverse, Tensor<T> scale,
                         Tensor<T> dy, Tensor<T> dx, Tensor<T> dscale, Tensor<T> dbias);
template <class T>
void batch_norm_backward(CudaContext& device, Tensor<T> x, Tensor<T> mean, Tensor<T> inverse, Tensor<T> scale,
                         Tensor<T> dy, Tensor<T> dx, Tensor<T> dscale, Tensor<T> dbias);

/// Adds `rows` times factor times the values [D] to the first D elements of `sum` [D + 1], and `rows` to the last.
template <class T>
void add_statistic(CpuContext& device, Tensor<T> values, T factor, std::int64_t rows, Tensor<T> sum);
template <class T>
void add_statistic(CudaContext& device, Tensor<T> values, T factor, std::int64_t rows, Tensor<T> sum);

/// Returns 1 / sqrt(variance + epsilon) of each column, in memory of the device's arena.
template <class T>
Tensor<T> inverse_deviation(CpuContext& device, Tensor<T> variance, double epsilon);
template <class T>
Tensor<T> inverse_deviation(CudaContext& device, Tensor<T> variance, double epsilon);

}  // namespace heed
