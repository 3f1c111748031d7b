#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

namespace heed {

/// The random number generator PCG64 (XSL RR 128/64; O'Neill 2014), arranged so that a CPU can compute many numbers at
/// once. One state would have to wait in each step for the multiplication of the step before. Instead there are
/// kStreams states, each one step ahead of the state before; all of them jump kStreams steps at a time, and no state
/// waits for another.
struct Pcg64Streams {
  __extension__ typedef unsigned __int128 Wide;  // ISO C++ has no 128-bit integers
  static constexpr std::size_t kStreams = 32;

  std::array<Wide, kStreams> states;
  Wide multiplier = 1, increment = 0;  ///< one jump: state = state * multiplier + increment

  /// Fills `out` with the next 64-bit numbers, each as its low half and then its high half. The size of `out` must be a
  /// multiple of 2 * kStreams.
  void draw(std::span<std::uint32_t> out);
};

/// Sets out[i] = floor(drawn[i] * size / 2^32), a number below `size`. Returns the least remainder of drawn[i] * size
/// mod 2^32, which tells the caller whether a number must be rejected.
std::uint32_t scale_drawn(std::span<const std::uint32_t> drawn, std::uint32_t size, std::uint32_t* out);

}  // namespace heed
