#pragma once

#include <span>
#include <string>
#include <string_view>

#include "heed/image/image.h"
#include "heed/inspect/color_map.h"

namespace heed {

/// A place on a canvas, in pixels from the left and from the top.
struct Point {
  double x = 0, y = 0;
};

/// Says which part of a text is drawn at the given point: the start, the middle or the end of the text.
enum class Anchor { start, middle, end };

struct TextStyle {
  double size = 12;  ///< size of the font, in pixels
  Anchor anchor = Anchor::start;
  double rotate = 0;  ///< rotation of the text around the given point, in degrees clockwise
  Rgb color = {34, 34, 34};
  bool bold = false;
};

/// The interface of a picture on which shapes and texts are drawn. All lengths are in pixels, and y grows downwards.
/// The size of the picture must be known before drawing begins; to compute the size, text_width() measures the texts.
class Canvas {
 public:
  virtual ~Canvas() = default;
  /// Draws a filled rectangle. In file formats that can show a tooltip, the text `hint` appears when the pointer is
  /// over the rectangle. With an opacity below 1, what was drawn before shows through.
  virtual void rectangle(Point corner, double width, double height, Rgb fill, std::string_view hint = {},
                         double opacity = 1) = 0;
  /// Draws an image, scaled to width x height.
  virtual void picture(Point corner, double width, double height, const Image& image) = 0;
  /// Draws a line through all points, from each point straight to the next.
  virtual void line(std::span<const Point> points, Rgb color, double width) = 0;
  /// Draws a filled circle. In file formats that can show a tooltip, the text `hint` appears when the pointer is over
  /// the circle.
  virtual void dot(Point center, double radius, Rgb fill, std::string_view hint = {}) = 0;
  /// Draws a text whose base line goes through the point `at`. style.anchor says whether the text starts, has its
  /// middle or ends at this point.
  virtual void text(Point at, std::string_view text, const TextStyle& style) = 0;
};

/// Returns an upper bound of the width, in pixels, that a text takes in a sans-serif font of `size` pixels. The result
/// is the same for SVG and for PNG pictures.
double text_width(std::string_view text, double size, bool bold = false);

}  // namespace heed
