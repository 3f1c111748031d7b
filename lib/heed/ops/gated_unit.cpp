#include "heed/ops/gated_unit.h"

#include "heed/ops/check.h"

namespace heed {

template <class T>
Variable<T> gated_unit(Graph<T>& graph, const Variable<T>& x, Activation activation, ResultUse use) {
  const Shape shape{x.value.rows(), x.value.columns() / 2};
  check_shape("gated_unit", "x", x.shape(), {shape[0], 2 * shape[1]});
  if (activation != Activation::gelu && activation != Activation::swish)
    throw Error("internal: gated_unit: the activation is neither gelu nor swish");
  const Variable<T> y = stores_rounded(graph, use) ? graph.rounded_result(shape) : graph.result(shape);
  graph.run([&](auto& device) { gated_unit_forward(device, x.value, activation, value_of(y)); });
  if (!x.tracked()) return y;
  graph.record([x, activation, y](auto& device) {
    const bool adds = !x.gradient.empty();
    gated_unit_backward(device, x.value, activation, arrived_gradient(y), x.gradient.begin_writing(), adds);
  });
  return y;
}

template Variable<float> gated_unit(Graph<float>&, const Variable<float>&, Activation, ResultUse);
template Variable<double> gated_unit(Graph<double>&, const Variable<double>&, Activation, ResultUse);

}  // namespace heed
