#include "heed/ops/alignment_loss.h"

#include "heed/base/error.h"

namespace heed {
template <class T>
Variable<T> alignment_loss(Graph<T>& graph, const Variable<T>& weights, int heads, PackedOffsets queries,
                           PackedOffsets keys, std::span<const AttentionLink> links, double scale,
                           AlignmentSums* sums) {
  std::int32_t last = 0;
  for (const AttentionLink& link : links) {
    if (link.sequence < last || link.sequence >= queries.sequences() || link.query < 0 ||
        link.query >= queries.length(link.sequence) || link.key < 0 || link.key >= keys.length(link.sequence))
      throw Error("internal: alignment_loss: link " + std::to_string(link.query) + " -> " + std::to_string(link.key) +
                  " of sequence " + std::to_string(link.sequence) + " is not within the sequences");
    last = link.sequence;
  }
  const AlignmentSums found = alignment_loss_forward(graph.device(), weights.value, heads, queries, keys, links);
  if (sums) *sums = found;
  const Variable<T> out = graph.result({});
  out.value[0] = static_cast<T>(scale * found.loss);
  graph.record([&device = graph.device(), weights, heads, queries, keys, links, scale, out] {
    if (!weights.tracked()) return;
    const double factor = scale * static_cast<double>(out.gradient.sum()[0]);
    alignment_loss_backward(device, weights.value, heads, queries, keys, links, factor, weights.gradient.sum());
  });
  return out;
}

template Variable<float> alignment_loss(Graph<float>&, const Variable<float>&, int, PackedOffsets, PackedOffsets,
                                        std::span<const AttentionLink>, double, AlignmentSums*);
template Variable<double> alignment_loss(Graph<double>&, const Variable<double>&, int, PackedOffsets, PackedOffsets,
                                         std::span<const AttentionLink>, double, AlignmentSums*);

}  // namespace heed
