#include "heed/ops/layer_norm.h"

#include "heed/ops/check.h"
#include "heed/ops/linear.h"

namespace heed {
namespace {

/// Computes layer_norm() or rms_norm(), which has no bias.
template <class T>
Variable<T> row_norm(Graph<T>& graph, RowNorm kind, const Variable<T>& x, const Variable<T>& scale,
                     const Variable<T>& bias, double epsilon) {
  Variable<T> y = graph.result(x.shape());
  y.rounded = rounded_memory(graph, x.shape());
  const Tensor<T> statistics = graph.recording() ? graph.arena().template tensor<T>({x.value.rows(), 2}) : Tensor<T>();
  graph.run([&](auto& device) {
    row_norm_forward(device, kind, x.value, scale.value, bias.value, epsilon, {y.value, y.rounded}, statistics);
  });
  graph.record([kind, x, scale, bias, statistics, y](auto& device) {
    row_norm_backward(device, kind, x.value, scale.value, statistics, y.gradient.sum(), x.gradient.sum(),
                      scale.gradient.sum(), bias.gradient.sum());
  });
  return y;
}

}  // namespace

template <class T>
Variable<T> layer_norm(Graph<T>& graph, const Variable<T>& x, const Variable<T>& scale, const Variable<T>& bias,
                       double epsilon) {
  check_shape("layer_norm", "scale", scale.shape(), {x.value.columns()});
  check_shape("layer_norm", "bias", bias.shape(), {x.value.columns()});
  return row_norm(graph, RowNorm::layer, x, scale, bias, epsilon);
}

template <class T>
Variable<T> rms_norm(Graph<T>& graph, const Variable<T>& x, const Variable<T>& scale, double epsilon) {
  check_shape("rms_norm", "scale", scale.shape(), {x.value.columns()});
  return row_norm(graph, RowNorm::rms, x, scale, Variable<T>(), epsilon);
}

template Variable<float> layer_norm(Graph<float>&, const Variable<float>&, const Variable<float>&,
                                    const Variable<float>&, double);
template Variable<double> layer_norm(Graph<double>&, const Variable<double>&, const Variable<double>&,
                                     const Variable<double>&, double);
template Variable<float> rms_norm(Graph<float>&, const Variable<float>&, const Variable<float>&, double);
template Variable<double> rms_norm(Graph<double>&, const Variable<double>&, const Variable<double>&, double);

}  // namespace heed
