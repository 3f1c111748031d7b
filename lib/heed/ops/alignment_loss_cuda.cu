#include "heed/ops/alignment_loss.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "heed/ops/alignment_links.h"
#include "heed/tensor/cuda_language.h"

namespace heed {
namespace {

/// A link's place among the attention weights: the weight in head h is element at + h step. `share` is the sum over all
/// links with this place.
struct PlacedLink {
  std::int64_t at, step;
  double share;
};

/// The placed links of a batch, in the memory of the GPU. No place occurs twice, so that no two threads write the same
/// gradient.
struct PlacedLinks {
  const PlacedLink* links;
  std::int64_t count;
};

PlacedLinks upload_links(CudaContext& device, PackedOffsets queries, PackedOffsets keys, int heads,
                         std::span<const AttentionLink> links) {
  std::vector<PlacedLink> all, placed;
  for_each_link(queries, keys, heads, links, [&](std::int64_t at, std::int64_t step, double share) {
    all.push_back({at, step, share});
  });
  std::stable_sort(all.begin(), all.end(), [](const PlacedLink& a, const PlacedLink& b) { return a.at < b.at; });
  for (const PlacedLink& link : all) {
    if (!placed.empty() && placed.back().at == link.at)
      placed.back().share += link.share;
    else
      placed.push_back(link);
  }
  return {upload<PlacedLink>(device, placed), std::ssize(placed)};
}

/// Returns e and the mean over the heads of the attention weight of a link.
template <class T>
__device__ double mean_weight(const T* weights, const PlacedLink& link, int heads) {
  double sum = 0;
  for (int h = 0; h < heads; ++h) sum += static_cast<double>(weights[link.at + h * link.step]);
  return sum / heads + kSmallWeight;
}

/// One block computes the loss: a batch has few links.
template <class T>
__global__ void loss_kernel(const T* weights, int heads, PlacedLinks links, double scale, T* loss,
                            AlignmentSums* sums) {
  AlignmentSums found;
  for_each_element(links.count, [&](std::int64_t i) {
    const PlacedLink link = links.links[i];
    found.loss -= link.share * std::log(mean_weight(weights, link, heads));
    found.queries += link.share;
  });
  found.loss = block_sum(found.loss, shared_memory<double>());
  found.queries = block_sum(found.queries, shared_memory<double>());
  if (threadIdx.x > 0) return;
  *loss = static_cast<T>(scale * found.loss);
  *sums = found;
}

template <class T>
__global__ void gradient_kernel(const T* weights, int heads, PlacedLinks links, double scale, const T* dloss,
                                T* gradient) {
  const double factor = scale * static_cast<double>(*dloss);
  for_each_element(links.count, [&](std::int64_t i) {
    const PlacedLink link = links.links[i];
    const auto change = static_cast<T>(-factor * link.share / (heads * mean_weight(weights, link, heads)));
    for (int h = 0; h < heads; ++h) gradient[link.at + h * link.step] += change;
  });
}

}  // namespace

template <class T>
void alignment_loss_forward(CudaContext& device, Tensor<T> weights, int heads, PackedOffsets queries,
                            PackedOffsets keys, std::span<const AttentionLink> links, double scale, T* loss,
                            AlignmentSums* sums) {
  constexpr unsigned kThreads = 256;
  const ArenaScope scope(device.arena);
  auto* const found = static_cast<AlignmentSums*>(device.arena.allocate(sizeof(AlignmentSums)));
  launch(device, {1, kThreads, kThreads / 32 * sizeof(double)}, loss_kernel<T>, weights.data(), heads,
         upload_links(device, queries, keys, heads, links), scale, loss, found);
  if (sums) download(device, found, {sums, 1});
}

template <class T>
void alignment_loss_backward(CudaContext& device, Tensor<T> weights, int heads, PackedOffsets queries,
                             PackedOffsets keys, std::span<const AttentionLink> links, double scale, const T* dloss,
                             Tensor<T> gradient) {
  const ArenaScope scope(device.arena);
  const PlacedLinks placed = upload_links(device, queries, keys, heads, links);
  launch(device, shape_for_elements(placed.count), gradient_kernel<T>, weights.data(), heads, placed, scale, dloss,
         gradient.data());
}

#define HEED_INSTANTIATE(T)                                                                         \
  template void alignment_loss_forward(CudaContext&, Tensor<T>, int, PackedOffsets, PackedOffsets,  \
                                       std::span<const AttentionLink>, double, T*, AlignmentSums*); \
  template void alignment_loss_backward(CudaContext&, Tensor<T>, int, PackedOffsets, PackedOffsets, \
                                        std::span<const AttentionLink>, double, const T*, Tensor<T>);
HEED_INSTANTIATE(float)
HEED_INSTANTIATE(double)
#undef HEED_INSTANTIATE

}  // namespace heed
