#include "heed/ops/stochastic_depth.h"

#include "heed/ops/dropout_mask.h"

namespace heed {

template <class T>
Variable<T> stochastic_depth(Graph<T>& graph, const Variable<T>& x, double p) {
  const PackedOffsets sequences = graph.rows();
  const DropoutMask<T> mask =
      draw_dropout_mask(graph, p, sequences.sequences(), sequences.sequences(), [](int) { return std::int64_t{1}; });
  if (!mask) return x;
  if (sequences.tokens() != x.value.rows())
    throw Error("internal: stochastic_depth: the sequences have " + std::to_string(sequences.tokens()) +
                " rows, the tensor has " + std::to_string(x.value.rows()));
  const Tensor<T> factors = graph.arena().template tensor<T>({sequences.sequences()});
  for (int b = 0; b < sequences.sequences(); ++b) factors[b] = mask.kept[b] ? mask.scale : T(0);
  const Variable<T> y = graph.result_in(x.value);
  scale_sequences<T>(graph.device(), x.value, sequences, factors.data(), false, y.value);
  graph.record([&device = graph.device(), x, y, sequences, factors] {
    if (!x.tracked()) return;
    scale_sequences<T>(device, y.gradient.sum(), sequences, factors.data(), true, x.gradient.sum());
  });
  return y;
}

template Variable<float> stochastic_depth(Graph<float>&, const Variable<float>&, double);
template Variable<double> stochastic_depth(Graph<double>&, const Variable<double>&, double);

}  // namespace heed
