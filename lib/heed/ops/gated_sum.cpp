#include "heed/ops/gated_sum.h"

#include "heed/ops/check.h"

namespace heed {

template <class T>
Variable<T> gated_sum(Graph<T>& graph, const Variable<T>& a, const Variable<T>& x, const Variable<T>& b,
                      const Variable<T>& z) {
  check_shape("gated_sum", "a", a.shape(), x.shape());
  check_shape("gated_sum", "b", b.shape(), x.shape());
  check_shape("gated_sum", "z", z.shape(), x.shape());
  const Variable<T> y = graph.result(x.shape());
  graph.run([&](auto& device) { gated_sum_forward(device, a.value, x.value, b.value, z.value, y.value); });
  graph.record([a, x, b, z, y](auto& device) {
    const auto add = [&](const Variable<T>& gate, const Variable<T>& input) {
      gated_sum_backward(device, gate.value, input.value, y.gradient.sum(),
                         gate.tracked() ? gate.gradient.sum() : Tensor<T>(),
                         input.tracked() ? input.gradient.sum() : Tensor<T>());
    };
    add(a, x);
    add(b, z);
  });
  return y;
}

template Variable<float> gated_sum(Graph<float>&, const Variable<float>&, const Variable<float>&,
                                   const Variable<float>&, const Variable<float>&);
template Variable<double> gated_sum(Graph<double>&, const Variable<double>&, const Variable<double>&,
                                    const Variable<double>&, const Variable<double>&);

}  // namespace heed
