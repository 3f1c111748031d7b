#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

namespace heed {

/// The random number generator PCG64 (XSL RR 128/64; O'Neill 2014) in a form in which a CPU computes many numbers at
/// once. With one state, each step would have to wait for the multiplication of the step before. Instead there are
/// kStreams states, each one step ahead of the state before it in the array; all states jump kStreams steps at a time,
/// and no state waits for another.
struct Pcg64Streams {
  __extension__ typedef unsigned __int128 Wide;  // a 128-bit integer, which ISO C++ does not have
  static constexpr std::size_t kStreams = 32;

  std::array<Wide, kStreams> states;
  /// The constants with which a state jumps kStreams steps: new state = state * multiplier + increment.
  Wide multiplier = 1, increment = 0;

  /// Fills `out` with the next 64-bit random numbers, each as two 32-bit numbers: its low half and then its high half.
  /// The size of `out` must be a multiple of 2 * kStreams.
  void draw(std::span<std::uint32_t> out);
};

/// Turns the 32-bit random numbers `drawn` into random numbers below `size`: out[i] = floor(drawn[i] * size / 2^32).
/// Returns the least of the remainders drawn[i] * size mod 2^32, from which the caller sees whether a number must be
/// rejected, so that all results are equally probable.
std::uint32_t scale_drawn(std::span<const std::uint32_t> drawn, std::uint32_t size, std::uint32_t* out);

}  // namespace heed
