#include "heed/ops/dropout.h"

namespace heed {

template <class T>
Variable<T> dropout(Graph<T>& graph, const Variable<T>& x, double p) {
  const DropoutMask<T> mask = draw_dropout_mask(graph, x.value.rows(), x.value.columns(), p);
  if (!mask) return x;
  const Variable<T> y = graph.result(x.shape());
  graph.run([&](auto& device) { dropout_forward(device, x.value, mask, y.value); });
  graph.record([x, mask, y](auto& device) {
    if (x.tracked()) dropout_backward(device, y.gradient.sum(), mask, x.gradient.sum());
  });
  return y;
}

template Variable<float> dropout(Graph<float>&, const Variable<float>&, double);
template Variable<double> dropout(Graph<double>&, const Variable<double>&, double);

}  // namespace heed
