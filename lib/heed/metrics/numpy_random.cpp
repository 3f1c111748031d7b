#include "heed/metrics/numpy_random.h"

#include <bit>

namespace heed {
namespace {

/// numpy.random.SeedSequence (after O'Neill's seed_seq): mixes the seed's 32-bit words into a pool of four and draws
/// `count` words from it.
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
  const auto words = seed_words<8>(seed);
  const auto word64 = [&words](std::size_t i) { return Wide{words[2 * i]} | Wide{words[2 * i + 1]} << 32; };
  const Wide start = word64(0) << 64 | word64(1), stream = word64(2) << 64 | word64(3);
  increment_ = stream << 1 | 1;
  step();
  state_ += start;
  step();
}

void NumpyRandom::step() {
  constexpr Wide multiplier = Wide{0x2360ED051FC65DA4} << 64 | 0x4385DF649FCCF645;
  state_ = state_ * multiplier + increment_;
}

std::uint64_t NumpyRandom::next64() {
  step();
  const auto high = static_cast<std::uint64_t>(state_ >> 64), low = static_cast<std::uint64_t>(state_);
  return std::rotr(high ^ low, static_cast<int>(high >> 58));
}

std::uint32_t NumpyRandom::next32() {
  if (has_high_half_) {
    has_high_half_ = false;
    return high_half_;
  }
  const std::uint64_t both = next64();
  high_half_ = static_cast<std::uint32_t>(both >> 32);
  has_high_half_ = true;
  return static_cast<std::uint32_t>(both);
}

std::uint32_t NumpyRandom::bounded(std::uint32_t size, std::uint32_t threshold, std::uint32_t drawn) {
  std::uint64_t product = std::uint64_t{drawn} * size;
  while (static_cast<std::uint32_t>(product) < threshold) product = std::uint64_t{next32()} * size;
  return static_cast<std::uint32_t>(product >> 32);
}

void NumpyRandom::choose(std::uint32_t size, std::span<std::uint32_t> out) {
  if (size == 1) {  // nothing to draw
    for (std::uint32_t& number : out) number = 0;
    return;
  }
  const std::uint32_t threshold = (UINT32_MAX - (size - 1)) % size;
  for (std::size_t at = 0; at < out.size();) {
    if (has_high_half_ || at + 1 == out.size()) {
      out[at++] = bounded(size, threshold, next32());
      continue;
    }
    const std::uint64_t both = next64();  // two at a time, unless one of them is drawn again
    const std::uint64_t first = (both & UINT32_MAX) * size, second = (both >> 32) * size;
    if (static_cast<std::uint32_t>(first) >= threshold && static_cast<std::uint32_t>(second) >= threshold) {
      out[at++] = static_cast<std::uint32_t>(first >> 32);
      out[at++] = static_cast<std::uint32_t>(second >> 32);
    } else {
      high_half_ = static_cast<std::uint32_t>(both >> 32);
      has_high_half_ = true;
      out[at++] = bounded(size, threshold, static_cast<std::uint32_t>(both));
    }
  }
}

}  // namespace heed
