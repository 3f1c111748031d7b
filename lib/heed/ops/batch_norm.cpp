#include "heed/ops/batch_norm.h"

#include <cmath>

#include "heed/ops/check.h"

namespace heed {
namespace {

/// Adds `rows` times the values [D] to the first D elements of `sum` [D + 1], and `rows` to the last.
template <class T>
void add_statistic(Tensor<T> values, T factor, std::int64_t rows, Tensor<T> sum) {
  const T count = static_cast<T>(rows);
  for (std::int64_t i = 0; i < values.size(); ++i) sum[i] += count * factor * values[i];
  sum[values.size()] += count;
}

}  // namespace

template <class T>
Tensor<T> inverse_deviation(CpuContext& device, Tensor<T> variance, double epsilon) {
  const Tensor<T> inverse = device.arena.template tensor<T>(variance.shape());
  for (std::int64_t i = 0; i < variance.size(); ++i) inverse[i] = 1 / std::sqrt(variance[i] + static_cast<T>(epsilon));
  return inverse;
}

template <class T>
Variable<T> batch_norm(Graph<T>& graph, const Variable<T>& x, const Variable<T>& scale, const Variable<T>& bias,
                       const RunningStatistics<T>& running, double epsilon) {
  const std::int64_t rows = x.value.rows(), n = x.value.columns();
  check_shape("batch_norm", "scale", scale.shape(), {n});
  check_shape("batch_norm", "bias", bias.shape(), {n});
  CpuContext& device = graph.device();
  const Variable<T> y = graph.result(x.shape());
  if (!graph.recording()) {
    check_shape("batch_norm", "running mean", running.mean.shape(), {n});
    check_shape("batch_norm", "running variance", running.variance.shape(), {n});
    const ArenaScope scope(graph.arena());
    batch_norm_forward(device, x.value, running.mean, inverse_deviation(device, running.variance, epsilon), scale.value,
                       bias.value, y.value);
    return y;
  }
  check_shape("batch_norm", "sum of means", running.mean_sum.shape(), {n + 1});
  check_shape("batch_norm", "sum of variances", running.variance_sum.shape(), {n + 1});
  if (rows == 0) return y;
  const Tensor<T> mean = graph.arena().template tensor<T>({n}), variance = graph.arena().template tensor<T>({n});
  column_statistics(device, x.value, mean, variance);
  const T unbiased = static_cast<T>(rows) / static_cast<T>(rows - 1);
  add_statistic(mean, T(1), rows, running.mean_sum);
  if (rows > 1) add_statistic(variance, unbiased, rows, running.variance_sum);
  const Tensor<T> inverse = inverse_deviation(device, variance, epsilon);
  batch_norm_forward(device, x.value, mean, inverse, scale.value, bias.value, y.value);
  graph.record([&device, x, scale, bias, mean, inverse, y] {
    batch_norm_backward(device, x.value, mean, inverse, scale.value, y.gradient.sum(), x.gradient.sum(),
                        scale.gradient.sum(), bias.gradient.sum());
  });
  return y;
}

template Tensor<float> inverse_deviation(CpuContext&, Tensor<float>, double);
template Tensor<double> inverse_deviation(CpuContext&, Tensor<double>, double);
template Variable<float> batch_norm(Graph<float>&, const Variable<float>&, const Variable<float>&,
                                    const Variable<float>&, const RunningStatistics<float>&, double);
template Variable<double> batch_norm(Graph<double>&, const Variable<double>&, const Variable<double>&,
                                     const Variable<double>&, const RunningStatistics<double>&, double);

}  // namespace heed
