#include "heed/metrics/numpy_random.h"

#include <algorithm>

namespace heed {
namespace {

/// Computes the first `count` 32-bit words that numpy.random.SeedSequence generates from a seed (the method is
/// O'Neill's seed_seq). The two 32-bit halves of the seed are mixed into an array of four words, from which the results
/// are computed.
template <std::size_t count>
std::array<std::uint32_t, count> seed_words(std::uint64_t seed) {
  constexpr std::size_t kPool = 4;
  std::uint32_t constant = 0x43B0D7E5;
  const auto hashed = [&constant](std::uint32_t value) {
    value ^= constant;
    constant *= 0x931E8875;
    value *= constant;
    return value ^ (value >> 16);
  };
  const std::array<std::uint32_t, kPool> entropy = {static_cast<std::uint32_t>(seed),
                                                    static_cast<std::uint32_t>(seed >> 32), 0, 0};
  std::array<std::uint32_t, kPool> pool;
  for (std::size_t i = 0; i < kPool; ++i) pool[i] = hashed(entropy[i]);
  for (std::size_t from = 0; from < kPool; ++from) {
    for (std::size_t to = 0; to < kPool; ++to) {
      if (from == to) continue;
      const std::uint32_t mixed = 0xCA01F9DDU * pool[to] - 0x4973F715U * hashed(pool[from]);
      pool[to] = mixed ^ (mixed >> 16);
    }
  }
  std::array<std::uint32_t, count> words;
  constant = 0x8B51F9DD;
  for (std::size_t i = 0; i < count; ++i) {
    std::uint32_t value = pool[i % kPool] ^ constant;
    constant *= 0x58F38DED;
    value *= constant;
    words[i] = value ^ (value >> 16);
  }
  return words;
}

}  // namespace

NumpyRandom::NumpyRandom(std::uint64_t seed) {
  using Wide = Pcg64Streams::Wide;
  constexpr Wide multiplier = Wide{0x2360ED051FC65DA4} << 64 | 0x4385DF649FCCF645;
  const auto words = seed_words<8>(seed);
  const auto word64 = [&words](std::size_t i) { return Wide{words[2 * i]} | Wide{words[2 * i + 1]} << 32; };
  const Wide start = word64(0) << 64 | word64(1), stream = word64(2) << 64 | word64(3);
  const Wide increment = stream << 1 | 1;
  Wide state = (increment + start) * multiplier + increment;
  for (Wide& each : streams_.states) {
    state = state * multiplier + increment;
    each = state;
    streams_.increment = streams_.increment * multiplier + increment;
    streams_.multiplier *= multiplier;
  }
}

void NumpyRandom::draw() {
  streams_.draw(drawn_);
  at_ = 0;
}

void NumpyRandom::choose(std::uint32_t size, std::span<std::uint32_t> out) {
  // If the only possible result is 0, NumPy uses none of its random numbers.
  if (size == 1) {
    for (std::uint32_t& number : out) number = 0;
    return;
  }
  // Lemire's method to get a uniform random number below `size` from a 32-bit random number r: the result is the upper
  // half of the product r * size. If the lower half of the product is less than `threshold`, r is rejected, since
  // otherwise some results would be more probable than others.
  const std::uint32_t threshold = (UINT32_MAX - (size - 1)) % size;
  for (std::size_t at = 0; at < out.size();) {
    if (at_ == drawn_.size()) draw();
    const std::size_t count = std::min(out.size() - at, drawn_.size() - at_);
    const auto drawn = std::span(drawn_).subspan(at_, count);
    at_ += count;
    if (scale_drawn(drawn, size, out.data() + at) >= threshold) {
      at += count;
      continue;
    }
    for (const std::uint32_t number : drawn) {
      const std::uint64_t product = std::uint64_t{number} * size;
      if (static_cast<std::uint32_t>(product) >= threshold) out[at++] = static_cast<std::uint32_t>(product >> 32);
    }
  }
}

}  // namespace heed
