#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

namespace heed {

/// PCG64 (XSL RR 128/64; O'Neill 2014), many numbers at once: a step waits for the multiplication of the step before,
/// but kStreams states, one step apart, that all go kStreams steps at a time do not.
struct Pcg64Streams {
  __extension__ typedef unsigned __int128 Wide;  // ISO C++ has none
  static constexpr std::size_t kStreams = 32;

  std::array<Wide, kStreams> states;
  Wide multiplier = 1, increment = 0;  ///< of kStreams steps

  /// The next numbers of 64 bits, low half first; `out` has room for a multiple of kStreams of them.
  void draw(std::span<std::uint32_t> out);
};

/// out[i] = floor(drawn[i] * size / 2^32). Returns the least remainder drawn[i] * size mod 2^32.
std::uint32_t scale_drawn(std::span<const std::uint32_t> drawn, std::uint32_t size, std::uint32_t* out);

}  // namespace heed
