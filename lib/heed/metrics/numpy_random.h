#pragma once

#include <array>
#include <cstdint>
#include <span>

#include "heed/metrics/numpy_random_kernels.h"

namespace heed {

/// Computes the same random numbers as numpy.random.default_rng(seed): the seeding of SeedSequence, the generator PCG64
/// (XSL RR 128/64; O'Neill 2014) and Lemire's method for integers below a bound (2019). Significance tests use these
/// numbers, so that the p-values equal sacreBLEU's.
class NumpyRandom {
 public:
  explicit NumpyRandom(std::uint64_t seed);

  /// Returns the next 32-bit random number. The generator PCG64 makes 64-bit numbers; the low half of each is returned
  /// first, and then the high half.
  std::uint32_t next32() {
    if (at_ == drawn_.size()) draw();
    return drawn_[at_++];
  }
  /// Fills `out` with random numbers from 0 to size - 1 (`size` from 1 to 2^32 - 1), the same numbers as NumPy's
  /// Generator.choice(size, ...) with replacement.
  void choose(std::uint32_t size, std::span<std::uint32_t> out);

 private:
  void draw();

  Pcg64Streams streams_;
  std::array<std::uint32_t, 2048> drawn_;
  std::size_t at_ = drawn_.size();
};

/// Computes the same random bits as repeated calls of NumPy's Generator.integers(2, dtype=bool): each 32-bit random
/// number gives 32 bits, the lowest bit first.
class NumpyBits {
 public:
  explicit NumpyBits(NumpyRandom& random) : random_(random) {}

  bool next() {
    bits_ = left_ > 0 ? bits_ >> 1 : random_.next32();
    left_ = left_ > 0 ? left_ - 1 : 31;
    return bits_ & 1;
  }

 private:
  NumpyRandom& random_;
  std::uint32_t bits_ = 0;
  int left_ = 0;
};

}  // namespace heed
