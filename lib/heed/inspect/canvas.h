#pragma once

#include <span>
#include <string>
#include <string_view>

#include "heed/inspect/color_map.h"

namespace heed {

/// A place on a canvas, in pixels from the left and from the top.
struct Point {
  double x = 0, y = 0;
};

/// The part of a text that lies at the given place: the text's start, middle or end.
enum class Anchor { start, middle, end };

struct TextStyle {
  double size = 12;  ///< size of the font, in pixels
  Anchor anchor = Anchor::start;
  double rotate = 0;  ///< degrees clockwise around the anchor
  Rgb color = {34, 34, 34};
  bool bold = false;
};

/// The interface of pictures to draw on, in pixels, with y downwards. The size of the picture must be known before
/// drawing begins; text_width() measures texts for it.
class Canvas {
 public:
  virtual ~Canvas() = default;
  /// Draws a filled rectangle. A format that can do so shows `hint` when the pointer is over the rectangle.
  virtual void rectangle(Point corner, double width, double height, Rgb fill, std::string_view hint = {}) = 0;
  /// Draws lines from point to point.
  virtual void line(std::span<const Point> points, Rgb color, double width) = 0;
  /// Draws a filled circle. A format that can do so shows `hint` when the pointer is over the circle.
  virtual void dot(Point center, double radius, Rgb fill, std::string_view hint = {}) = 0;
  /// Draws a text whose base line goes through `at`.
  virtual void text(Point at, std::string_view text, const TextStyle& style) = 0;
};

/// Returns the width in pixels that a text takes at most in a sans-serif font of `size` pixels, the same for every
/// format.
double text_width(std::string_view text, double size, bool bold = false);

}  // namespace heed
