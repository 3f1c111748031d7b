#pragma once

#include <span>
#include <string>
#include <string_view>

#include "heed/inspect/color_map.h"

namespace heed {

struct Point {
  double x = 0, y = 0;
};

enum class Anchor { start, middle, end };

struct TextStyle {
  double size = 12;  ///< of the font, in pixels
  Anchor anchor = Anchor::start;
  double rotate = 0;  ///< degrees clockwise around the anchor
  Rgb color = {34, 34, 34};
  bool bold = false;
};

/// What pictures are drawn on; pixels, y downwards. The size is known beforehand: text is measured by text_width().
class Canvas {
 public:
  virtual ~Canvas() = default;
  /// `hint` is shown under the pointer where the format can do that.
  virtual void rectangle(Point corner, double width, double height, Rgb fill, std::string_view hint = {}) = 0;
  virtual void line(std::span<const Point> points, Rgb color, double width) = 0;
  virtual void dot(Point center, double radius, Rgb fill, std::string_view hint = {}) = 0;
  /// `at` is on the base line.
  virtual void text(Point at, std::string_view text, const TextStyle& style) = 0;
};

/// Width to leave for a text in a sans-serif font, the same for every format; on the safe side.
double text_width(std::string_view text, double size, bool bold = false);

}  // namespace heed
