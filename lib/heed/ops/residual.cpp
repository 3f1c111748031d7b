#include "heed/ops/residual.h"

#include "heed/ops/check.h"
#include "heed/ops/dropout.h"
#include "heed/ops/rounded_result.h"

namespace heed {

template <class T>
Variable<T> residual(Graph<T>& graph, const Variable<T>& residual, const Variable<T>& branch, double p) {
  check_shape("residual", "branch", branch.shape(), residual.shape());
  const DropoutMask<T> mask = draw_dropout_mask(graph, value_of(branch).rows(), value_of(branch).columns(), p);
  const Variable<T> y = graph.result(residual.shape());
  graph.run([&](auto& device) { residual_forward(device, residual.value, value_of(branch), mask, y.value); });
  graph.record([residual, branch, mask, y](auto& device) {
    if (residual.tracked()) dropout_backward(device, y.gradient.sum(), {}, residual.gradient.sum());
    if (branch.tracked()) dropout_backward(device, y.gradient.sum(), mask, branch.gradient.sum());
  });
  return y;
}

template Variable<float> residual(Graph<float>&, const Variable<float>&, const Variable<float>&, double);
template Variable<double> residual(Graph<double>&, const Variable<double>&, const Variable<double>&, double);

}  // namespace heed
