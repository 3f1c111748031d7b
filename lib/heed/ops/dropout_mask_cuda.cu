#include "heed/ops/dropout_mask.h"

#include <vector>

#include "heed/tensor/cuda_language.h"

namespace heed {
namespace {

/// A part of a mask as the kernel needs it: the key and the counter of its stream of random numbers, its place in the
/// mask, and the number of blocks of random bits of the parts before it.
struct StreamPart {
  std::uint32_t key[2], counter[3];
  std::int64_t begin, elements, blocks_before;
};

/// The elements of a mask that take their random bits from the same 16 blocks (see fill_dropout_mask()).
constexpr std::int64_t kGroup = 128, kGroupBlocks = 16;

std::int64_t blocks_of(std::int64_t elements) {
  return (elements + kGroup - 1) / kGroup * kGroupBlocks;
}

/// Computes a block of random bits with Philox4x32-10 (see base/random.h).
__device__ void philox(const StreamPart& part, std::uint32_t block, std::uint32_t (&words)[4]) {
  std::uint32_t c[4] = {block, part.counter[0], part.counter[1], part.counter[2]};
  std::uint32_t key0 = part.key[0], key1 = part.key[1];
  for (int round = 0; round < 10; ++round) {
    const std::uint64_t a = std::uint64_t{0xD2511F53} * c[0], b = std::uint64_t{0xCD9E8D57} * c[2];
    c[0] = static_cast<std::uint32_t>(b >> 32) ^ c[1] ^ key0;
    c[2] = static_cast<std::uint32_t>(a >> 32) ^ c[3] ^ key1;
    c[1] = static_cast<std::uint32_t>(b);
    c[3] = static_cast<std::uint32_t>(a);
    key0 += 0x9E3779B9;
    key1 += 0xBB67AE85;
  }
  for (int w = 0; w < 4; ++w) words[w] = c[w];
}

/// Each thread computes a block of random bits, which decides about eight elements.
__global__ void draw_kernel(const StreamPart* parts, int count, std::int64_t blocks, std::uint32_t threshold,
                            std::uint8_t* kept) {
  for_each_element(blocks, [&](std::int64_t i) {
    int low = 0, high = count;  // the part is one of low ... high - 1
    while (high - low > 1) {
      const int middle = (low + high) / 2;
      (parts[middle].blocks_before <= i ? low : high) = middle;
    }
    const StreamPart& part = parts[low];
    const std::int64_t block = i - part.blocks_before, group = block / kGroupBlocks, pair = block % kGroupBlocks;
    std::uint32_t words[4];
    philox(part, static_cast<std::uint32_t>(block), words);
    for (int w = 0; w < 4; ++w)
      for (int half = 0; half < 2; ++half) {
        const std::int64_t element = group * kGroup + w * 32 + 2 * pair + half;
        if (element < part.elements) kept[part.begin + element] = (words[w] >> 16 * half & 0xFFFF) >= threshold ? 1 : 0;
      }
  });
}

__global__ void fill_kernel(std::uint8_t* bytes, std::uint8_t value, std::int64_t n) {
  for_each_element(n, [&](std::int64_t i) { bytes[i] = value; });
}

}  // namespace

void draw_dropout_parts(CudaContext& device, std::span<const DropoutPart> parts, std::uint32_t threshold,
                        std::int64_t slack, std::uint8_t* kept) {
  std::vector<StreamPart> streams;
  std::int64_t elements = 0, blocks = 0;
  for (const DropoutPart& part : parts) {
    const auto key = part.stream.key();
    const auto counter = part.stream.counter();
    streams.push_back({{key[0], key[1]}, {counter[1], counter[2], counter[3]}, elements, part.elements, blocks});
    elements += part.elements;
    blocks += blocks_of(part.elements);
  }
  const ArenaScope scope(device.arena);
  launch(device, shape_for_elements(blocks), draw_kernel, upload<StreamPart>(device, streams),
         static_cast<int>(streams.size()), blocks, threshold, kept);
  launch(device, shape_for_elements(slack), fill_kernel, kept + elements, std::uint8_t{0}, slack);
}

}  // namespace heed
