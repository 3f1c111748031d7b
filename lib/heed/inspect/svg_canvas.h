#pragma once

#include <string>

#include "heed/inspect/canvas.h"

namespace heed {

/// One self-contained SVG 1.1 file on white ground.
class SvgCanvas : public Canvas {
 public:
  SvgCanvas(double width, double height, std::string_view title);
  void rectangle(Point corner, double width, double height, Rgb fill, std::string_view hint = {}) override;
  void line(std::span<const Point> points, Rgb color, double width) override;
  void dot(Point center, double radius, Rgb fill, std::string_view hint = {}) override;
  void text(Point at, std::string_view text, const TextStyle& style) override;

  /// The finished file.
  std::string take();

 private:
  std::string out_;
};

/// Text for XML: markup characters as entities, characters that XML 1.0 forbids as U+FFFD.
std::string xml_escape(std::string_view text);

}  // namespace heed
