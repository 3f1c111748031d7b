#include "heed/ops/softmax.h"

namespace heed {

template <class T>
Variable<T> softmax(Graph<T>& graph, const Variable<T>& x) {
  const Variable<T> y = graph.result(x.shape());
  graph.run([&](auto& device) { softmax_forward(device, x.value, y.value); });
  graph.record([x, y](auto& device) {
    if (x.tracked()) softmax_backward(device, y.value, y.gradient.sum(), x.gradient.sum());
  });
  return y;
}

template <class T>
Variable<T> log_softmax(Graph<T>& graph, const Variable<T>& x) {
  const Variable<T> y = graph.result(x.shape());
  graph.run([&](auto& device) { log_softmax_forward(device, x.value, y.value); });
  graph.record([x, y](auto& device) {
    if (x.tracked()) log_softmax_backward(device, y.value, y.gradient.sum(), x.gradient.sum());
  });
  return y;
}

template Variable<float> softmax(Graph<float>&, const Variable<float>&);
template Variable<double> softmax(Graph<double>&, const Variable<double>&);
template Variable<float> log_softmax(Graph<float>&, const Variable<float>&);
template Variable<double> log_softmax(Graph<double>&, const Variable<double>&);

}  // namespace heed
