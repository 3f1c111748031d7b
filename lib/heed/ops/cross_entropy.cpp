#include "heed/ops/cross_entropy.h"

#include "heed/ops/check.h"

namespace heed {

template <class T>
Variable<T> projection_cross_entropy(Graph<T>& graph, const Variable<T>& hidden, const Variable<T>& weight,
                                     const Variable<T>& bias, std::span<const std::int32_t> targets,
                                     const CrossEntropyOptions& options, CrossEntropySums* sums) {
  const std::int64_t vocabulary = weight.value.dim(0);
  check_shape("cross-entropy", "hidden", hidden.shape(),
              {static_cast<std::int64_t>(targets.size()), weight.value.columns()});
  if (bias) check_shape("cross-entropy", "bias", bias.shape(), {vocabulary});
  for (const std::int32_t target : targets)
    if (target < 0 || target >= vocabulary)
      throw Error("internal: cross-entropy: target " + std::to_string(target) + " is outside a vocabulary of " +
                  std::to_string(vocabulary));
  const Variable<T> loss = graph.result({});
  const CrossEntropySums found =
      cross_entropy_cpu(graph.device(), hidden.value, weight.value, bias.value, targets, options, hidden.gradient.sum(),
                        weight.gradient.sum(), bias.gradient.sum());
  loss.value[0] = static_cast<T>(options.scale * found.loss);
  if (sums) *sums = found;
  graph.record([&device = graph.device(), hidden, weight, bias, targets, options, loss] {
    const T arrived = loss.gradient.sum()[0];
    if (arrived == 1) return;
    CrossEntropyOptions rest = options;
    rest.scale *= static_cast<double>(arrived) - 1;
    cross_entropy_cpu(device, hidden.value, weight.value, bias.value, targets, rest, hidden.gradient.sum(),
                      weight.gradient.sum(), bias.gradient.sum());
  });
  return loss;
}

template Variable<float> projection_cross_entropy(Graph<float>&, const Variable<float>&, const Variable<float>&,
                                                  const Variable<float>&, std::span<const std::int32_t>,
                                                  const CrossEntropyOptions&, CrossEntropySums*);
template Variable<double> projection_cross_entropy(Graph<double>&, const Variable<double>&, const Variable<double>&,
                                                   const Variable<double>&, std::span<const std::int32_t>,
                                                   const CrossEntropyOptions&, CrossEntropySums*);

}  // namespace heed
