#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

namespace heed {

/// The limits of a batch: how many lines it may have, and how many tokens, unless a single line has more.
struct LineBatchLimits {
  int lines = 0;
  int tokens = 0;
};

/// Returns how many images of this many samples a batch may have. A model that cuts images into large patches makes few
/// tokens of an image, while the memory holds all its samples.
int most_images(std::int64_t samples, bool gpu);

/// Cuts lines, which are sorted by their number of tokens, longest first, into batches for `threads` threads. Returns
/// the first line of each batch and the one after its last. The number of batches is about a multiple of the number of
/// threads, and all but the last have about the same number of tokens, so that all threads finish together and even a
/// few lines are spread over the threads.
std::vector<std::pair<std::size_t, std::size_t>> cut_into_batches(std::span<const std::int64_t> tokens,
                                                                  const LineBatchLimits& limits, int threads);

}  // namespace heed
