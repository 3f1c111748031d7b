#include "heed/ops/cross_entropy.h"

#include "heed/ops/check.h"

namespace heed {
namespace {

template <class T>
void check_output_layer(const Variable<T>& hidden, const Variable<T>& weight, const Variable<T>& bias,
                        std::span<const std::int32_t> targets) {
  const std::int64_t vocabulary = weight.value.dim(0);
  check_shape("cross-entropy", "hidden", hidden.shape(), {std::ssize(targets), weight.value.columns()});
  if (bias) check_shape("cross-entropy", "bias", bias.shape(), {vocabulary});
  for (const std::int32_t target : targets)
    if (target < 0 || target >= vocabulary)
      throw Error("internal: cross-entropy: target " + std::to_string(target) + " is outside a vocabulary of " +
                  std::to_string(vocabulary));
}

/// Returns a scalar loss. compute(device, options, result) computes the loss and the sums and, in training, adds the
/// gradients. `compute` must be trivially destructible.
template <class T, class Compute>
Variable<T> loss_with_gradients(Graph<T>& graph, const CrossEntropyOptions& options, CrossEntropySums* sums,
                                Compute compute) {
  const Variable<T> loss = graph.result({});
  graph.run([&](auto& device) { compute(device, options, LossResult<T>{loss.value.data(), sums}); });
  graph.record([options, loss, compute](auto& device) {
    // To read a number makes the host wait for a GPU, which is not necessary where the loss is that of backward().
    if (loss.gradient.is_one()) return;
    const T arrived = Device(device).read(loss.gradient.sum());
    CrossEntropyOptions rest = options;
    rest.scale *= static_cast<double>(arrived) - 1;
    compute(device, rest, LossResult<T>{});
  });
  return loss;
}

}  // namespace

template <class T>
Variable<T> projection_cross_entropy(Graph<T>& graph, const Variable<T>& hidden, const Variable<T>& weight,
                                     const Variable<T>& bias, std::span<const std::int32_t> targets,
                                     const CrossEntropyOptions& options, CrossEntropySums* sums,
                                     const SoftTargets<T>& soft) {
  check_output_layer(hidden, weight, bias, targets);
  for (const TeacherStates<T>& teacher : soft.teachers) {
    check_shape("cross-entropy", "a teacher's weight", teacher.weight.shape(),
                {weight.value.dim(0), teacher.weight.columns()});
    check_shape("cross-entropy", "a teacher's hidden states", teacher.hidden.shape(),
                {std::ssize(targets), teacher.weight.columns()});
    if (teacher.bias) check_shape("cross-entropy", "a teacher's bias", teacher.bias.shape(), {weight.value.dim(0)});
  }
  if (!options.second_targets.empty()) {
    check_output_layer(hidden, weight, bias, options.second_targets);
    if (options.second_shares.size() != targets.size())
      throw Error("internal: cross-entropy: each second target needs a share");
  }
  return loss_with_gradients(
      graph, options, sums,
      [hidden, weight, bias, targets, soft](auto& device, const CrossEntropyOptions& scaled, LossResult<T> result) {
        cross_entropy_forward(device, hidden.value, weight.value, bias.value, targets, scaled, soft,
                              hidden.gradient.sum(), weight.gradient.sum(), bias.gradient.sum(), result);
      });
}

template <class T>
Variable<T> consistent_cross_entropy(Graph<T>& graph, const Variable<T>& first, const Variable<T>& second,
                                     const Variable<T>& weight, const Variable<T>& bias,
                                     std::span<const std::int32_t> targets, const CrossEntropyOptions& options,
                                     double consistency, CrossEntropySums* sums) {
  if (!options.second_targets.empty()) throw Error("internal: cross-entropy: two passes have no mixed targets");
  check_output_layer(first, weight, bias, targets);
  check_output_layer(second, weight, bias, targets);
  return loss_with_gradients(graph, options, sums,
                             [first, second, weight, bias, targets, consistency](
                                 auto& device, const CrossEntropyOptions& scaled, LossResult<T> result) {
                               consistent_cross_entropy_forward<T>(device, {first.value, first.gradient.sum()},
                                                                   {second.value, second.gradient.sum()}, weight.value,
                                                                   bias.value, targets, scaled, consistency,
                                                                   weight.gradient.sum(), bias.gradient.sum(), result);
                             });
}

#define HEED_INSTANTIATE(T)                                                                                            \
  template Variable<T> projection_cross_entropy(Graph<T>&, const Variable<T>&, const Variable<T>&, const Variable<T>&, \
                                                std::span<const std::int32_t>, const CrossEntropyOptions&,             \
                                                CrossEntropySums*, const SoftTargets<T>&);                             \
  template Variable<T> consistent_cross_entropy(Graph<T>&, const Variable<T>&, const Variable<T>&, const Variable<T>&, \
                                                const Variable<T>&, std::span<const std::int32_t>,                     \
                                                const CrossEntropyOptions&, double, CrossEntropySums*);
HEED_INSTANTIATE(float)
HEED_INSTANTIATE(double)
#undef HEED_INSTANTIATE

}  // namespace heed
