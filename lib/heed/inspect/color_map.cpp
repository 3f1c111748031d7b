#include "heed/inspect/color_map.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <numbers>

namespace heed {
namespace {

/// A colour in linear sRGB. Each component is from 0 to 1.
struct Linear {
  double red, green, blue;
};

/// Converts a colour from OKLab (B. Ottosson, 2020), given as lightness, chroma and hue (an angle in radians), to
/// linear sRGB.
Linear from_oklch(double lightness, double chroma, double hue) {
  const double a = chroma * std::cos(hue), b = chroma * std::sin(hue);
  const double l = std::pow(lightness + 0.3963377774 * a + 0.2158037573 * b, 3);
  const double m = std::pow(lightness - 0.1055613458 * a - 0.0638541728 * b, 3);
  const double s = std::pow(lightness - 0.0894841775 * a - 1.2914855480 * b, 3);
  return {4.0767416621 * l - 3.3077115913 * m + 0.2309699292 * s,
          -1.2684380046 * l + 2.6097574011 * m - 0.3413193965 * s,
          -0.0041960863 * l - 0.7034186147 * m + 1.7076147010 * s};
}

/// Converts one component of a colour (red, green or blue) from linear sRGB, 0 to 1, to a byte of sRGB, 0 to 255.
std::uint8_t to_srgb(double linear) {
  const double x = std::clamp(linear, 0.0, 1.0);
  const double encoded = x <= 0.0031308 ? 12.92 * x : 1.055 * std::pow(x, 1 / 2.4) - 0.055;
  return static_cast<std::uint8_t>(std::lround(255 * encoded));
}

/// Computes the colour of an attention weight from 0 to 1. From 0 to 1 the lightness grows evenly, and the hue goes
/// from violet to yellow. The chroma is the largest that sRGB can represent, up to a moderate maximum.
Rgb compute(double value) {
  const double lightness = 0.21 + 0.72 * value;
  const double hue = (308 - 202 * std::pow(value, 0.95)) * std::numbers::pi / 180;
  double chroma = 0.115 + 0.065 * value * value * value;
  for (;; chroma *= 0.98) {
    const Linear c = from_oklch(lightness, chroma, hue);
    const auto [low, high] = std::minmax({c.red, c.green, c.blue});
    if (chroma < 0.01 || (low >= -1e-4 && high <= 1 + 1e-4)) return {to_srgb(c.red), to_srgb(c.green), to_srgb(c.blue)};
  }
}

/// Returns a value of at least 0 rounded up to one significant digit.
float rounded_up(float value) {
  if (!(value > 0)) return 0;
  const double unit = std::pow(10, std::floor(std::log10(static_cast<double>(value))));
  return static_cast<float>(std::ceil(static_cast<double>(value) / unit - 1e-3) * unit);
}

}  // namespace

std::string hex_text(Rgb color) {
  constexpr char digits[] = "0123456789abcdef";
  std::string out = "#";
  for (const int part : {color.red, color.green, color.blue}) {
    out += digits[part / 16];
    out += digits[part % 16];
  }
  return out;
}

Rgb color_of(float value) {
  static const auto table = [] {
    std::array<Rgb, 256> colors;
    for (std::size_t i = 0; i < colors.size(); ++i) colors[i] = compute(static_cast<double>(i) / 255);
    return colors;
  }();
  const float clamped = std::isnan(value) ? 0 : std::clamp(value, 0.0F, 1.0F);
  return table[static_cast<std::size_t>(std::lround(255 * clamped))];
}

int palette_index(float value) {
  // Indices in the palette of 256 colours, from dark to light. They were chosen by eye to look like the colours of
  // color_of().
  constexpr std::array ladder{235, 53, 54, 25, 30, 36, 42, 113, 185, 227};
  const float step = std::isnan(value) ? 0 : std::clamp(value, 0.0F, 1.0F) * static_cast<float>(ladder.size());
  return ladder[std::min(static_cast<std::size_t>(step), ladder.size() - 1)];
}

int palette_index(Rgb color) {
  // The 216 colours have one of these six values for each of red, green and blue.
  constexpr std::array levels{0, 95, 135, 175, 215, 255};
  const auto nearest = [&](int part) {
    std::size_t best = 0;
    for (std::size_t i = 1; i < levels.size(); ++i)
      if (std::abs(levels[i] - part) < std::abs(levels[best] - part)) best = i;
    return static_cast<int>(best);
  };
  return 16 + 36 * nearest(color.red) + 6 * nearest(color.green) + nearest(color.blue);
}

ColorScale fine_scale(std::span<const float> values) {
  float least = 0, greatest = 0;
  for (const float value : values) {
    least = std::min(least, value);
    greatest = std::max(greatest, value);
  }
  if (least == 0 && greatest == 0) return {0, 0.1F};
  return {least < 0 ? -rounded_up(-least) : 0, rounded_up(greatest)};
}

float scale_top(float greatest) {
  return std::clamp(std::ceil(greatest * 10 - 1e-3F) / 10, 0.1F, 1.0F);
}

}  // namespace heed
