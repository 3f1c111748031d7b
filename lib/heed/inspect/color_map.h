#pragma once

#include <cstdint>
#include <span>
#include <string>

namespace heed {

/// A colour in sRGB. Each component is from 0 to 255.
struct Rgb {
  std::uint8_t red = 0, green = 0, blue = 0;
  bool operator==(const Rgb&) const = default;
};

/// Returns a colour as SVG and HTML write it, such as "#1f77b4".
std::string hex_text(Rgb color);

/// Returns the colour in which a heat map shows a weight: dark violet for 0, then blue and green, light yellow for 1.
/// Values outside of 0..1 are clamped. The lightness grows evenly with the weight, so that equal steps look equal, also
/// in grey-scale print and for colour-blind readers.
Rgb color_of(float value);

/// Returns the index of the colour in which a heat map shows a weight on a terminal with 256 colours. The result is one
/// of ten colours among the indices 16 to 255, which look the same on all terminals.
int palette_index(float value);

/// Returns the index of the colour, among the 216 colours 16 to 231 of a terminal with 256 colours, that is nearest to
/// the given colour.
int palette_index(Rgb color);

/// Returns the upper end of a colour scale for weights of which the largest is `greatest`: `greatest` rounded up to a
/// tenth, at least 0.1 and at most 1.
float scale_top(float greatest);

/// The values at both ends of a colour scale.
struct ColorScale {
  float low = 0, high = 1;
  /// Returns the place of a value on the scale: 0 for `low`, 1 for `high`, the argument of color_of().
  float place(float value) const { return (value - low) / (high - low); }
};

/// Returns a colour scale for values that may all be small, and negative: from 0 or, where there are negative values,
/// from the least one, to the greatest value or to 0. The ends are rounded away from 0 to one significant digit. Where
/// all values are 0, the scale ends at 0.1.
ColorScale fine_scale(std::span<const float> values);

}  // namespace heed
