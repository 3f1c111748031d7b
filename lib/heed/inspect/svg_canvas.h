#pragma once

#include <map>
#include <string>

#include "heed/inspect/canvas.h"

namespace heed {

/// A canvas that makes an SVG 1.1 file with a white background. The SVG file refers to no other files.
class SvgCanvas : public Canvas {
 public:
  SvgCanvas(double width, double height, std::string_view title);
  void rectangle(Point corner, double width, double height, Rgb fill, std::string_view hint = {},
                 double opacity = 1) override;
  /// The image is part of the file, once for all places where it has the same size.
  void picture(Point corner, double width, double height, const Image& image) override;
  void line(std::span<const Point> points, Rgb color, double width) override;
  void dot(Point center, double radius, Rgb fill, std::string_view hint = {}) override;
  void text(Point at, std::string_view text, const TextStyle& style) override;

  /// Returns the contents of the SVG file. Call this function after everything has been drawn.
  std::string take();

 private:
  std::string out_;
  std::map<std::string, std::size_t> pictures_;  // the number of each image; the key is the element that draws it
};

/// Returns a text in a form in which it can be the content of an XML element: characters that have a meaning in XML,
/// such as < and &, become entities, and characters that XML 1.0 forbids become U+FFFD.
std::string xml_escape(std::string_view text);

}  // namespace heed
