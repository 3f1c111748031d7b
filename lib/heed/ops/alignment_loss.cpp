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
  const Variable<T> out = graph.result({});
  graph.run([&](auto& device) {
    alignment_loss_forward(device, weights.value, heads, queries, keys, links, scale, out.value.data(), sums);
  });
  graph.record([weights, heads, queries, keys, links, scale, out](auto& device) {
    if (!weights.tracked()) return;
    alignment_loss_backward<T>(device, weights.value, heads, queries, keys, links, scale, out.gradient.sum().data(),
                               weights.gradient.sum());
  });
  return out;
}

template Variable<float> alignment_loss(Graph<float>&, const Variable<float>&, int, PackedOffsets, PackedOffsets,
                                        std::span<const AttentionLink>, double, AlignmentSums*);
template Variable<double> alignment_loss(Graph<double>&, const Variable<double>&, int, PackedOffsets, PackedOffsets,
                                         std::span<const AttentionLink>, double, AlignmentSums*);

}  // namespace heed
