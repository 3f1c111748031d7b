#pragma once

#include <array>
#include <cstdint>

namespace heed {

/// Philox4x32 with 10 rounds (Salmon et al. 2011, "Parallel random numbers: as easy as 1, 2, 3"): 128 random bits as a
/// pure function of a 64-bit key and a 128-bit counter. Randomness in heed is such a function, never a state, so that
/// it is the same for any number of threads and exact after a resume.
std::array<std::uint32_t, 4> philox(std::array<std::uint32_t, 2> key, std::array<std::uint32_t, 4> counter);

/// What a stream of random numbers is for; part of the counter, so that streams never share numbers.
enum class RandomUse : std::uint32_t { initialisation = 1, dropout = 2, shuffle = 3, sampling = 4, subwords = 5 };

/// A stream of random numbers, addressed by element: words(i) is the i-th block of four 32-bit words.
class RandomStream {
 public:
  /// `major` and `minor` number the streams of one use (say, the update and the op within it); `minor` below 2^24.
  RandomStream(std::uint64_t seed, RandomUse use, std::uint64_t major = 0, std::uint32_t minor = 0)
      : key_{static_cast<std::uint32_t>(seed), static_cast<std::uint32_t>(seed >> 32)},
        major_(major),
        minor_((static_cast<std::uint32_t>(use) << 24) ^ minor) {}

  std::array<std::uint32_t, 4> words(std::uint32_t block) const {
    return philox(key_, {block, minor_, static_cast<std::uint32_t>(major_), static_cast<std::uint32_t>(major_ >> 32)});
  }
  /// Uniform in [0, 1) with 53 bits; element i of the stream.
  double uniform(std::uint64_t i) const;
  /// Standard normal (Box-Muller); element i of the stream.
  double normal(std::uint64_t i) const;
  /// Uniform in {0, ..., n-1}, n > 0, by multiply-shift on 64 bits (bias below n / 2^64).
  std::uint64_t below(std::uint64_t n, std::uint64_t i) const;

  std::array<std::uint32_t, 2> key() const { return key_; }
  /// The counter of block 0.
  std::array<std::uint32_t, 4> counter() const {
    return {0, minor_, static_cast<std::uint32_t>(major_), static_cast<std::uint32_t>(major_ >> 32)};
  }

 private:
  std::array<std::uint32_t, 2> key_;
  std::uint64_t major_;
  std::uint32_t minor_;
};

/// Fisher-Yates shuffle of a random-access container by a stream.
template <class Container>
void shuffle(Container& items, const RandomStream& stream) {
  for (std::uint64_t i = items.size(); i > 1; --i) {
    using std::swap;
    swap(items[i - 1], items[stream.below(i, i)]);
  }
}

}  // namespace heed
