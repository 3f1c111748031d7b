#include "heed/run/translate_batches.h"

#include <algorithm>
#include <numeric>

namespace heed {

int most_images(std::int64_t samples, bool gpu) {
  const std::int64_t most_samples = std::int64_t{1} << (gpu ? 26 : 24);  // ids of 256 MiB or 64 MiB
  return static_cast<int>(std::max<std::int64_t>(1, most_samples / samples));
}

std::vector<std::pair<std::size_t, std::size_t>> cut_into_batches(std::span<const std::int64_t> tokens,
                                                                  const LineBatchLimits& limits, int threads) {
  // Returns the quotient all / some, rounded up, and at least 1.
  const auto divide_up = [](std::int64_t all, std::int64_t some) {
    return std::max<std::int64_t>(1, (all + some - 1) / some);
  };
  const std::int64_t total = std::accumulate(tokens.begin(), tokens.end(), std::int64_t{0});
  const std::int64_t rounds = std::max(divide_up(std::ssize(tokens), std::int64_t{limits.lines} * threads),
                                       divide_up(total, std::int64_t{limits.tokens} * threads));
  const std::int64_t parts = rounds * threads;
  std::vector<std::pair<std::size_t, std::size_t>> batches;
  std::int64_t before = 0;
  for (std::size_t begin = 0; begin < tokens.size();) {
    const std::int64_t until = total * (std::ssize(batches) + 1) / parts;
    std::size_t end = begin;
    std::int64_t sum = 0;
    while (end < tokens.size() && end - begin < static_cast<std::size_t>(limits.lines) &&
           (end == begin || (sum + tokens[end] <= limits.tokens && before + sum + tokens[end] / 2 < until)))
      sum += tokens[end++];
    batches.emplace_back(begin, end);
    begin = end;
    before += sum;
  }
  return batches;
}

}  // namespace heed
