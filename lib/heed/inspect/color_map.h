#pragma once

#include <cstdint>

namespace heed {

/// A colour, with parts from 0 to 255.
struct Rgb {
  std::uint8_t red = 0, green = 0, blue = 0;
  bool operator==(const Rgb&) const = default;
};

/// Returns the colour of a weight: dark violet for 0, then blue and green, light yellow for 1. Values outside of 0..1
/// are clamped. The lightness grows evenly with the weight, so that equal steps look equal, also in grey-scale print
/// and for colour-blind readers.
Rgb color_of(float value);

/// Returns the colour of a weight on a terminal with 256 colours, as one of ten of the fixed colours 16 to 255.
int palette_index(float value);

/// Returns the upper end of a scale that must show the weight `greatest`: the weight rounded up to a tenth, at least
/// 0.1.
float scale_top(float greatest);

}  // namespace heed
