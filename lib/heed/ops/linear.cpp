#include "heed/ops/linear.h"

#include "heed/ops/check.h"

namespace heed {
namespace {

/// The panels of a weight: kept with the graph's packed parameters, else in its memory.
template <class T>
Panels<T> panels_of(Graph<T>& graph, Tensor<T> weight) {
  const std::int64_t n = weight.dim(0), k = weight.dim(1), size = Panels<T>::size(n, k);
  const auto pack = [&](T* panels) { pack_panels(n, k, weight.data(), k, panels); };
  if (graph.packed()) return {graph.packed()->get(weight, size, pack)};
  T* panels = graph.arena().template tensor<T>({size}).data();
  pack(panels);
  return {panels};
}

}  // namespace

template <class T>
Variable<T> linear(Graph<T>& graph, const Variable<T>& x, const Variable<T>& weight, const Variable<T>& bias,
                   Activation activation) {
  check_shape("linear", "weight", weight.shape(), {weight.value.dim(0), x.value.columns()});
  if (bias) check_shape("linear", "bias", bias.shape(), {weight.value.dim(0)});
  const Variable<T> y = graph.result({x.value.rows(), weight.value.dim(0)});
  if (!graph.recording() && graph.device().precision == Precision::float32) {
    const ArenaScope scope(graph.arena());
    linear_rows(x.value, panels_of(graph, weight.value), bias.value, activation, y.value);
    return y;
  }
  const bool keeps_input = activation == Activation::gelu || activation == Activation::swish;
  const Tensor<T> before = keeps_input && graph.recording() ? graph.arena().template tensor<T>(y.shape()) : Tensor<T>();
  linear_forward(graph.device(), x.value, weight.value, bias.value, activation, before, y.value);
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
