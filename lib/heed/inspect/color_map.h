#pragma once

#include <cstdint>

namespace heed {

struct Rgb {
  std::uint8_t red = 0, green = 0, blue = 0;
  bool operator==(const Rgb&) const = default;
};

/// The colour of a weight, 0 (dark violet) over blue and green to 1 (light yellow); values outside are clamped.
/// Lightness rises evenly with the weight, so equal steps look equal, and the order survives grey-scale print and
/// colour blindness.
Rgb color_of(float value);

/// The same in ten steps of the fixed colours (16-255) of 256-colour terminals.
int palette_index(float value);

/// The greatest weight that a scale has to show, rounded up to a tenth (at least 0.1).
float scale_top(float greatest);

}  // namespace heed
