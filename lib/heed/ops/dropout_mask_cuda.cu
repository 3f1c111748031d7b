#include "heed/ops/dropout_mask.h"

#include <vector>

#include "heed/tensor/cuda_language.h"

namespace heed {
namespace {

/// A part of a mask as the kernel needs it: with its place in the mask, and the number of blocks of random bits of the
/// parts before it.
struct PlacedPart {
  DropoutPart part;
  std::int64_t begin, blocks_before;
};

/// The elements of a mask that take their random bits from the same 16 blocks (see fill_dropout_mask()).
constexpr std::int64_t kGroup = 128, kGroupBlocks = 16;

std::int64_t blocks_of(std::int64_t elements) {
  return (elements + kGroup - 1) / kGroup * kGroupBlocks;
}

/// Each thread computes a block of random bits, which decides about eight elements.
__global__ void draw_kernel(const PlacedPart* parts, int count, std::int64_t blocks, std::uint32_t threshold,
                            std::uint8_t* kept) {
  for_each_element(blocks, [&](std::int64_t i) {
    int low = 0, high = count;  // the part is one of low ... high - 1
    while (high - low > 1) {
      const int middle = (low + high) / 2;
      (parts[middle].blocks_before <= i ? low : high) = middle;
    }
    const PlacedPart& placed = parts[low];
    const std::int64_t block = i - placed.blocks_before, group = block / kGroupBlocks, pair = block % kGroupBlocks;
    const auto words = placed.part.stream.words(static_cast<std::uint32_t>(block));
    for (unsigned w = 0; w < 4; ++w)
      for (unsigned half = 0; half < 2; ++half) {
        const std::int64_t element = group * kGroup + w * 32 + 2 * pair + half;
        if (element < placed.part.elements)
          kept[placed.begin + element] = (words[w] >> 16 * half & 0xFFFF) >= threshold ? 1 : 0;
      }
  });
}

}  // namespace

void draw_dropout_parts(CudaContext& device, std::span<const DropoutPart> parts, std::uint32_t threshold,
                        std::int64_t slack, std::uint8_t* kept) {
  std::vector<PlacedPart> placed;
  std::int64_t elements = 0, blocks = 0;
  for (const DropoutPart& part : parts) {
    placed.push_back({part, elements, blocks});
    elements += part.elements;
    blocks += blocks_of(part.elements);
  }
  const ArenaScope scope(device.arena);
  launch(device, shape_for_elements(blocks), draw_kernel, upload<PlacedPart>(device, placed),
         static_cast<int>(placed.size()), blocks, threshold, kept);
  fill_on_gpu(device, kept + elements, slack, std::uint8_t{0});
}

}  // namespace heed
