#include "heed/ops/layer_norm.h"

#include "heed/ops/check.h"

namespace heed {

template <class T>
Variable<T> layer_norm(Graph<T>& graph, const Variable<T>& x, const Variable<T>& scale, const Variable<T>& bias,
                       double epsilon) {
  check_shape("layer_norm", "scale", scale.shape(), {x.value.columns()});
  check_shape("layer_norm", "bias", bias.shape(), {x.value.columns()});
  const Variable<T> y = graph.result(x.shape());
  const Tensor<T> statistics = graph.recording() ? graph.arena().template tensor<T>({x.value.rows(), 2}) : Tensor<T>();
  layer_norm_forward(graph.device(), x.value, scale.value, bias.value, epsilon, y.value, statistics);
  graph.record([&device = graph.device(), x, scale, bias, statistics, y] {
    layer_norm_backward(device, x.value, scale.value, statistics, y.gradient.sum(), x.gradient.sum(),
                        scale.gradient.sum(), bias.gradient.sum());
  });
  return y;
}

template Variable<float> layer_norm(Graph<float>&, const Variable<float>&, const Variable<float>&,
                                    const Variable<float>&, double);
template Variable<double> layer_norm(Graph<double>&, const Variable<double>&, const Variable<double>&,
                                     const Variable<double>&, double);

}  // namespace heed
