#pragma once

#include <array>
#include <cstdint>

namespace heed {

/// Returns 128 random bits, computed by Philox4x32 with 10 rounds (Salmon et al. 2011, "Parallel random numbers: as
/// easy as 1, 2, 3"): a pure function of a 64-bit key and a 128-bit counter. heed computes all its random numbers in
/// this way and keeps no state of a generator, so that the numbers are the same for any number of threads, and a
/// resumed training gets the same numbers as a training without a pause.
constexpr std::array<std::uint32_t, 4> philox(std::array<std::uint32_t, 2> key, std::array<std::uint32_t, 4> counter) {
  auto& c = counter;
  for (int round = 0; round < 10; ++round) {
    const std::uint64_t p0 = std::uint64_t{0xD2511F53} * c[0];
    const std::uint64_t p1 = std::uint64_t{0xCD9E8D57} * c[2];
    c = {static_cast<std::uint32_t>(p1 >> 32) ^ c[1] ^ key[0], static_cast<std::uint32_t>(p1),
         static_cast<std::uint32_t>(p0 >> 32) ^ c[3] ^ key[1], static_cast<std::uint32_t>(p0)};
    key[0] += 0x9E3779B9;
    key[1] += 0xBB67AE85;
  }
  return c;
}

/// The purposes for which heed draws random numbers. The purpose is a part of the random generator's counter, so that
/// two purposes never get the same numbers.
enum class RandomUse : std::uint32_t {
  initialisation = 1,
  dropout = 2,
  shuffle = 3,
  sampling = 4,
  subwords = 5,
  examples = 6,
  windows = 7,
  masks = 8,
  images = 9
};

/// A sequence of random numbers in which element i is computed directly from i, without computing the elements before
/// it.
class RandomStream {
 public:
  /// Makes one of the random streams for the purpose `use`. `major` and `minor` are two numbers that tell the streams
  /// of one purpose apart, for example the number of the training update and the number of the operation in the update;
  /// `minor` must be below 2^24.
  RandomStream(std::uint64_t seed, RandomUse use, std::uint64_t major = 0, std::uint32_t minor = 0)
      : key_{static_cast<std::uint32_t>(seed), static_cast<std::uint32_t>(seed >> 32)},
        major_(major),
        minor_((static_cast<std::uint32_t>(use) << 24) ^ minor) {}

  /// Returns the 128 random bits of the stream's block number `block`, as four 32-bit words.
  constexpr std::array<std::uint32_t, 4> words(std::uint32_t block) const {
    return philox(key_, {block, minor_, static_cast<std::uint32_t>(major_), static_cast<std::uint32_t>(major_ >> 32)});
  }
  /// Returns element i of the stream as a number that is uniform in [0, 1), with 53 random bits.
  double uniform(std::uint64_t i) const;
  /// Returns element i of the stream as a number with the standard normal distribution (Box-Muller method).
  double normal(std::uint64_t i) const;
  /// Returns element i of the stream as a whole number that is uniform in {0, ..., n-1}, n > 0. The result is the upper
  /// half of the product of n and 64 random bits, so that some results are more probable than others by less than n /
  /// 2^64.
  std::uint64_t below(std::uint64_t n, std::uint64_t i) const;

  std::array<std::uint32_t, 2> key() const { return key_; }
  /// Returns the counter that the random function philox() gets for block 0 of the stream.
  std::array<std::uint32_t, 4> counter() const {
    return {0, minor_, static_cast<std::uint32_t>(major_), static_cast<std::uint32_t>(major_ >> 32)};
  }

 private:
  std::array<std::uint32_t, 2> key_;
  std::uint64_t major_;
  std::uint32_t minor_;
};

/// Puts the items of a random-access container in a random order, by the Fisher-Yates method with random numbers from
/// `stream`.
template <class Container>
void shuffle(Container& items, const RandomStream& stream) {
  for (std::uint64_t i = items.size(); i > 1; --i) {
    using std::swap;
    swap(items[i - 1], items[stream.below(i, i)]);
  }
}

}  // namespace heed
