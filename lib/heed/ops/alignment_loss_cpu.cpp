#include <cmath>

#include "heed/ops/alignment_loss.h"
#include "heed/ops/attention.h"

namespace heed {
namespace {

constexpr double kSmall = 1e-6;  // e in the formula of the loss

/// Calls body(at, step, share) for each link: the weight of the link's query and key in head h is element at + h step.
template <class Body>
void for_each_link(PackedOffsets queries, PackedOffsets keys, int heads, std::span<const AttentionLink> links,
                   const Body& body) {
  std::int64_t begin = 0;
  std::int32_t sequence = -1;
  for (const AttentionLink& link : links) {
    if (link.sequence != sequence) {
      sequence = link.sequence;
      begin = attention_weights_offset(queries, keys, heads, sequence, 0);
    }
    const std::int64_t length = keys.length(sequence);
    body(begin + link.query * length + link.key, queries.length(sequence) * length, static_cast<double>(link.share));
  }
}

/// Returns the mean over the heads of an attention weight.
template <class T>
double mean_weight(const Tensor<T>& weights, std::int64_t at, std::int64_t step, int heads) {
  double sum = 0;
  for (int h = 0; h < heads; ++h) sum += static_cast<double>(weights[at + h * step]);
  return sum / heads;
}

}  // namespace

template <class T>
void alignment_loss_forward(CpuContext&, Tensor<T> weights, int heads, PackedOffsets queries, PackedOffsets keys,
                            std::span<const AttentionLink> links, double scale, T* loss, AlignmentSums* sums) {
  AlignmentSums found;
  for_each_link(queries, keys, heads, links, [&](std::int64_t at, std::int64_t step, double share) {
    found.loss -= share * std::log(mean_weight(weights, at, step, heads) + kSmall);
    found.queries += share;
  });
  *loss = static_cast<T>(scale * found.loss);
  if (sums) *sums = found;
}

template <class T>
void alignment_loss_backward(CpuContext&, Tensor<T> weights, int heads, PackedOffsets queries, PackedOffsets keys,
                             std::span<const AttentionLink> links, double scale, const T* dloss, Tensor<T> gradient) {
  const double factor = scale * static_cast<double>(*dloss);
  for_each_link(queries, keys, heads, links, [&](std::int64_t at, std::int64_t step, double share) {
    const auto change = static_cast<T>(-factor * share / (heads * (mean_weight(weights, at, step, heads) + kSmall)));
    for (int h = 0; h < heads; ++h) gradient[at + h * step] += change;
  });
}

#define HEED_INSTANTIATE(T)                                                                         \
  template void alignment_loss_forward(CpuContext&, Tensor<T>, int, PackedOffsets, PackedOffsets,   \
                                       std::span<const AttentionLink>, double, T*, AlignmentSums*); \
  template void alignment_loss_backward(CpuContext&, Tensor<T>, int, PackedOffsets, PackedOffsets,  \
                                        std::span<const AttentionLink>, double, const T*, Tensor<T>);
HEED_INSTANTIATE(float)
HEED_INSTANTIATE(double)
#undef HEED_INSTANTIATE

}  // namespace heed
