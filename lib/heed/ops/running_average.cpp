#include "heed/ops/running_average.h"

#include <algorithm>

#include "heed/ops/check.h"

namespace heed {
namespace {

/// Returns the steps of a packed batch whose states are the rows of `states` [N, D], in memory of an arena of the host.
template <class T>
std::span<const StateStep<T>> steps_over(Arena& arena, PackedOffsets packed, Tensor<T> states) {
  const Tensor<StateStep<T>> steps = arena.tensor<StateStep<T>>({states.rows()});
  for (int s = 0; s < packed.sequences(); ++s)
    for (std::int64_t t = packed.begin(s); t < packed.begin(s) + packed.length(s); ++t)
      steps[t] = {t == packed.begin(s) ? nullptr : states.row(t - 1), states.row(t),
                  static_cast<std::int32_t>(t - packed.begin(s) + 1)};
  return steps.span();
}

}  // namespace

template <class T>
Variable<T> running_mean(Graph<T>& graph, const Variable<T>& x, PackedOffsets packed) {
  check_shape("running_mean", "x", x.shape(), {packed.tokens(), x.value.columns()});
  const Variable<T> y = graph.result(x.shape());
  {
    const ArenaScope scope(graph.host_arena());
    const std::span<const StateStep<T>> steps = steps_over(graph.host_arena(), packed, y.value);
    graph.run([&](auto& device) { running_mean_step(device, x.value, steps, y.value); });
  }
  graph.record([x, y, packed](auto& device) {
    if (x.tracked()) running_mean_backward(device, packed, y.gradient.sum(), x.gradient.sum());
  });
  return y;
}

template <class T>
Variable<T> simple_recurrence(Graph<T>& graph, const Variable<T>& gates, PackedOffsets packed) {
  const std::int64_t width = gates.value.columns() / 2;
  check_shape("simple_recurrence", "gates", gates.shape(), {packed.tokens(), 2 * width});
  const Variable<T> y = graph.result({packed.tokens(), width});
  const Tensor<T> states = graph.arena().template tensor<T>(y.shape());
  {
    const ArenaScope scope(graph.host_arena());
    const std::span<const StateStep<T>> steps = steps_over(graph.host_arena(), packed, states);
    graph.run([&](auto& device) { simple_recurrence_step(device, gates.value, steps, y.value); });
  }
  graph.record([gates, states, y, packed](auto& device) {
    if (gates.tracked())
      simple_recurrence_backward(device, packed, gates.value, states, y.gradient.sum(), gates.gradient.sum());
  });
  return y;
}

template Variable<float> running_mean(Graph<float>&, const Variable<float>&, PackedOffsets);
template Variable<double> running_mean(Graph<double>&, const Variable<double>&, PackedOffsets);
template Variable<float> simple_recurrence(Graph<float>&, const Variable<float>&, PackedOffsets);
template Variable<double> simple_recurrence(Graph<double>&, const Variable<double>&, PackedOffsets);

}  // namespace heed
