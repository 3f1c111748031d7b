#include "heed/ops/linear.h"

#include "heed/ops/check.h"

namespace heed {

template <class T>
Variable<T> linear(Graph<T>& graph, const Variable<T>& x, const Variable<T>& weight, const Variable<T>& bias,
                   Activation activation, ResultUse use) {
  MaybeRounded<T> rows = value_of(x);
  check_shape("linear", "weight", weight.shape(), {weight.value.dim(0), rows.columns()});
  if (bias) check_shape("linear", "bias", bias.shape(), {weight.value.dim(0)});
  const Shape shape{rows.rows(), weight.value.dim(0)};
  const Variable<T> y = stores_rounded(graph, use) ? graph.rounded_result(shape) : graph.result(shape);
  if (!graph.recording()) {
    graph.run([&](auto& device) {
      linear_inference(device, graph.packed(), rows, weight.value, bias.value, activation, value_of(y));
    });
    return y;
  }
  if (takes_rounded_gradient(graph, use)) y.gradient.allow_rounding();
  const bool keeps_input = activation == Activation::gelu || activation == Activation::swish;
  const Tensor<T> before = keeps_input ? graph.arena().template tensor<T>(shape) : Tensor<T>();
  const MaybeRounded<T> result = value_of(y);
  graph.run([&](auto& device) {
    rows = operand_of_products(device, rows);
    linear_forward(device, rows, value_of(weight), value_of(bias), activation, before, result);
  });
  const MaybeRounded<T> kept = keeps_input ? MaybeRounded<T>{before} : result;
  graph.record([x, rows, weight, bias, activation, kept, y](auto& device) {
    const bool adds = !x.gradient.empty();
    linear_backward(device, rows, value_of(weight), activation, kept, arrived_gradient(y), new_gradient(device, x),
                    adds, weight.gradient.sum(), bias.gradient.sum());
  });
  return y;
}

template Variable<float> linear(Graph<float>&, const Variable<float>&, const Variable<float>&, const Variable<float>&,
                                Activation, ResultUse);
template Variable<double> linear(Graph<double>&, const Variable<double>&, const Variable<double>&,
                                 const Variable<double>&, Activation, ResultUse);

}  // namespace heed
