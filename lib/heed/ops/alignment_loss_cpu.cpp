#include <cmath>

#include "heed/ops/alignment_links.h"

namespace heed {
namespace {

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
    found.loss -= share * std::log(mean_weight(weights, at, step, heads) + kSmallWeight);
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
    const auto change =
        static_cast<T>(-factor * share / (heads * (mean_weight(weights, at, step, heads) + kSmallWeight)));
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
