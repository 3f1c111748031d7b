#include "heed/ops/dropout_mask.h"

#include <vector>

#include "heed/tensor/cuda_language.h"
#include "heed/tensor/cuda_packs.h"

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

/// The blocks of random bits that a thread computes, and the elements next to each other that they decide about: with
/// each of the four words of a block, two elements.
constexpr int kThreadBlocks = 4, kPackedElements = 2 * kThreadBlocks;

/// Stores a pack of a mask from element i of a part on, which has `elements` elements and begins at `to`.
__device__ __forceinline__ void store_kept(const Pack<std::uint8_t, kPackedElements>& kept, std::int64_t i,
                                           std::int64_t elements, std::uint8_t* to) {
  if (i + kPackedElements <= elements && reinterpret_cast<std::uintptr_t>(to) % kPackedElements == 0) {
    store_pack(kept, to + i);
    return;
  }
  HEED_UNROLL
  for (int k = 0; k < kPackedElements; ++k)
    if (i + k < elements) to[i + k] = kept[k];
}

/// Each thread computes kThreadBlocks blocks of random bits, which decide about eight elements each. `quads` is the
/// number of such threads.
__global__ void draw_kernel(const PlacedPart* parts, int count, std::int64_t quads, std::uint32_t threshold,
                            std::uint8_t* kept) {
  for_each_element(quads, [&](std::int64_t i) {
    const std::int64_t first = i * kThreadBlocks;
    int low = 0, high = count;  // the part is one of low ... high - 1
    while (high - low > 1) {
      const int middle = (low + high) / 2;
      (parts[middle].blocks_before <= first ? low : high) = middle;
    }
    const PlacedPart placed = parts[low];
    const std::int64_t block = first - placed.blocks_before;
    const std::int64_t element = block / kGroupBlocks * kGroup + 2 * (block % kGroupBlocks);
    Pack<std::uint8_t, kPackedElements> drawn[4];
    HEED_UNROLL
    for (int b = 0; b < kThreadBlocks; ++b) {
      const auto words = placed.part.stream.words(static_cast<std::uint32_t>(block + b));
      HEED_UNROLL
      for (unsigned w = 0; w < 4; ++w) {
        drawn[w][2 * b] = (words[w] & 0xFFFF) >= threshold;
        drawn[w][2 * b + 1] = words[w] >> 16 >= threshold;
      }
    }
    HEED_UNROLL
    for (int w = 0; w < 4; ++w) store_kept(drawn[w], element + 32 * w, placed.part.elements, kept + placed.begin);
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
  static_assert(kGroupBlocks % kThreadBlocks == 0);
  launch(device, shape_for_elements(blocks / kThreadBlocks), draw_kernel, upload<PlacedPart>(device, placed),
         static_cast<int>(placed.size()), blocks / kThreadBlocks, threshold, kept);
  fill_on_gpu(device, kept + elements, slack, std::uint8_t{0});
}

}  // namespace heed
