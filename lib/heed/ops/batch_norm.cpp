#include "heed/ops/batch_norm.h"

#include "heed/ops/check.h"

namespace heed {

template <class T>
Variable<T> batch_norm(Graph<T>& graph, const Variable<T>& x, const Variable<T>& scale, const Variable<T>& bias,
                       const RunningStatistics<T>& running, double epsilon) {
  const std::int64_t rows = x.value.rows(), n = x.value.columns();
  check_shape("batch_norm", "scale", scale.shape(), {n});
  check_shape("batch_norm", "bias", bias.shape(), {n});
  const Variable<T> y = graph.result(x.shape());
  if (!graph.recording()) {
    check_shape("batch_norm", "running mean", running.mean.shape(), {n});
    check_shape("batch_norm", "running variance", running.variance.shape(), {n});
    graph.run([&](auto& device) {
      const ArenaScope scope(device.arena);
      batch_norm_forward(device, x.value, running.mean, inverse_deviation(device, running.variance, epsilon),
                         scale.value, bias.value, y.value);
    });
    return y;
  }
  check_shape("batch_norm", "sum of means", running.mean_sum.shape(), {n + 1});
  check_shape("batch_norm", "sum of variances", running.variance_sum.shape(), {n + 1});
  if (rows == 0) return y;
  const Tensor<T> mean = graph.arena().template tensor<T>({n}), variance = graph.arena().template tensor<T>({n});
  const Tensor<T> inverse = graph.run([&](auto& device) {
    column_statistics(device, x.value, mean, variance);
    const T unbiased = static_cast<T>(rows) / static_cast<T>(rows - 1);
    add_statistic(device, mean, T(1), rows, running.mean_sum);
    if (rows > 1) add_statistic(device, variance, unbiased, rows, running.variance_sum);
    const Tensor<T> found = inverse_deviation(device, variance, epsilon);
    batch_norm_forward(device, x.value, mean, found, scale.value, bias.value, y.value);
    return found;
  });
  graph.record([x, scale, bias, mean, inverse, y](auto& device) {
    batch_norm_backward(device, x.value, mean, inverse, scale.value, y.gradient.sum(), x.gradient.sum(),
                        scale.gradient.sum(), bias.gradient.sum());
  });
  return y;
}

template Variable<float> batch_norm(Graph<float>&, const Variable<float>&, const Variable<float>&,
                                    const Variable<float>&, const RunningStatistics<float>&, double);
template Variable<double> batch_norm(Graph<double>&, const Variable<double>&, const Variable<double>&,
                                     const Variable<double>&, const RunningStatistics<double>&, double);

}  // namespace heed
