#include "heed/ops/sequence_mean.h"

#include "heed/ops/check.h"

namespace heed {

template <class T>
Variable<T> sequence_mean(Graph<T>& graph, const Variable<T>& x, PackedOffsets sequences) {
  check_shape("sequence_mean", "x", x.shape(), {sequences.tokens(), x.value.columns()});
  const Variable<T> y = graph.result({sequences.sequences(), x.value.columns()});
  graph.run([&](auto& device) { sequence_mean_forward<T>(device, x.value, sequences, y.value); });
  graph.record([x, y, sequences](auto& device) {
    if (x.tracked()) sequence_mean_backward<T>(device, y.gradient.sum(), sequences, x.gradient.sum());
  });
  return y;
}

template Variable<float> sequence_mean(Graph<float>&, const Variable<float>&, PackedOffsets);
template Variable<double> sequence_mean(Graph<double>&, const Variable<double>&, PackedOffsets);

}  // namespace heed
