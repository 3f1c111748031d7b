#include "heed/ops/stochastic_depth.h"

#include "heed/ops/dropout_mask.h"
#include "heed/ops/rounded_result.h"

namespace heed {

template <class T>
Variable<T> stochastic_depth(Graph<T>& graph, const Variable<T>& x, double p) {
  const std::uint32_t threshold = dropout_threshold(p);
  if (threshold == 0 || !graph.recording()) return x;
  const PackedOffsets sequences = graph.rows();
  if (sequences.tokens() != value_of(x).rows())
    throw Error("internal: stochastic_depth: the sequences have " + std::to_string(sequences.tokens()) +
                " rows, the tensor has " + std::to_string(value_of(x).rows()));
  const DropoutStreams streams = graph.next_dropout();
  const std::span<T> factors = graph.host_arena().template tensor<T>({sequences.sequences()}).span();
  for (int b = 0; b < sequences.sequences(); ++b) {
    std::uint8_t kept = 0;
    fill_dropout_mask(streams.of(b), threshold, 1, &kept);
    factors[static_cast<std::size_t>(b)] = kept ? dropout_scale<T>(threshold) : T(0);
  }
  const Variable<T> y = x.is_rounded() ? graph.result(x.shape()) : graph.result_in(x.value);
  graph.run([&](auto& device) { scale_sequences<T>(device, value_of(x), sequences, factors, false, y.value); });
  graph.record([x, y, sequences, factors](auto& device) {
    if (x.tracked()) scale_sequences<T>(device, {y.gradient.sum()}, sequences, factors, true, x.gradient.sum());
  });
  return y;
}

template Variable<float> stochastic_depth(Graph<float>&, const Variable<float>&, double);
template Variable<double> stochastic_depth(Graph<double>&, const Variable<double>&, double);

}  // namespace heed
