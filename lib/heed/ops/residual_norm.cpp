#include "heed/ops/residual_norm.h"

#include "heed/ops/check.h"
#include "heed/ops/rounded_result.h"

namespace heed {

template <class T>
ResidualNorm<T> residual_norm(Graph<T>& graph, RowNorm kind, const Variable<T>& residual, const Variable<T>& branch,
                              const Variable<T>& scale, const Variable<T>& bias, double epsilon, double p,
                              Tensor<T> memory) {
  check_shape("residual_norm", "branch", branch.shape(), residual.shape());
  check_shape("residual_norm", "scale", scale.shape(), {residual.value.columns()});
  const bool has_bias = kind == RowNorm::layer;
  check_shape("residual_norm", "bias", bias.shape(), has_bias ? Shape{residual.value.columns()} : Shape());
  const DropoutMask<T> mask = draw_dropout_mask(graph, residual.value.rows(), residual.value.columns(), p);
  if (memory) check_shape("residual_norm", "memory", memory.shape(), residual.shape());
  ResidualNorm<T> y{memory ? graph.result_in(memory) : graph.result(residual.shape()), graph.result(residual.shape())};
  y.normed.rounded = rounded_memory(graph, residual.shape());
  const Tensor<T> statistics =
      graph.recording() ? graph.arena().template tensor<T>({residual.value.rows(), 2}) : Tensor<T>();
  graph.run([&](auto& device) {
    residual_norm_forward(device, kind, residual.value, value_of(branch), mask, scale.value, bias.value, epsilon,
                          y.sum.value, {y.normed.value, y.normed.rounded}, statistics);
  });
  graph.record([kind, residual, branch, scale, bias, mask, statistics, y](auto& device) {
    const bool adds_to_residual = !residual.gradient.empty();
    const Tensor<T> dresidual = residual.gradient.begin_writing();
    // Where branch and residual are the same variable, the gradient of the variable is no longer empty after
    // begin_writing(), so the kernel adds to the gradient.
    const bool adds_to_branch = !branch.gradient.empty();
    const Tensor<T> dsum = y.sum.gradient.empty() ? Tensor<T>() : y.sum.gradient.sum();
    residual_norm_backward(device, kind, y.sum.value, mask, scale.value, statistics, dsum, y.normed.gradient.sum(),
                           dresidual, adds_to_residual, new_gradient(device, branch), adds_to_branch,
                           scale.gradient.sum(), bias.gradient.sum());
  });
  return y;
}

template ResidualNorm<float> residual_norm(Graph<float>&, RowNorm, const Variable<float>&, const Variable<float>&,
                                           const Variable<float>&, const Variable<float>&, double, double,
                                           Tensor<float>);
template ResidualNorm<double> residual_norm(Graph<double>&, RowNorm, const Variable<double>&, const Variable<double>&,
                                            const Variable<double>&, const Variable<double>&, double, double,
                                            Tensor<double>);

}  // namespace heed
