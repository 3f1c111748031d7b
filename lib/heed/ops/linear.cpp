#include "heed/ops/linear.h"

#include "heed/ops/check.h"

namespace heed {

template <class T>
Variable<T> linear(Graph<T>& graph, const Variable<T>& x, const Variable<T>& weight, const Variable<T>& bias,
                   Activation activation) {
  check_shape("linear", "weight", weight.shape(), {weight.value.dim(0), x.value.columns()});
  if (bias) check_shape("linear", "bias", bias.shape(), {weight.value.dim(0)});
  const Variable<T> y = graph.result({x.value.rows(), weight.value.dim(0)});
  const bool keeps_input = activation == Activation::gelu || activation == Activation::swish;
  const Tensor<T> before = keeps_input && graph.recording() ? graph.arena().template tensor<T>(y.shape()) : Tensor<T>();
  const bool rows_alone = !graph.recording() && graph.device().precision == Precision::float32;
  linear_forward(graph.device(), x.value, weight.value, bias.value, activation, before, y.value, rows_alone);
  graph.record([&device = graph.device(), x, weight, bias, activation, kept = keeps_input ? before : y.value, y] {
    linear_backward(device, x.value, weight.value, activation, kept, y.gradient, x.gradient, weight.gradient,
                    bias.gradient);
  });
  return y;
}

template Variable<float> linear(Graph<float>&, const Variable<float>&, const Variable<float>&, const Variable<float>&,
                                Activation);
template Variable<double> linear(Graph<double>&, const Variable<double>&, const Variable<double>&,
                                 const Variable<double>&, Activation);

}  // namespace heed
