#pragma once

#include <memory>
#include <string>

#include "heed/inspect/canvas.h"

namespace heed {

/// A canvas that makes a PNG file with a white background; the library cairo draws the picture. One unit of the canvas'
/// coordinates is `scale` pixels of the file. Tooltips (`hint`) are not shown. A character that the usual font lacks is
/// taken from any installed font that has the character. Ill-formed UTF-8, NUL and the noncharacters of Unicode, such
/// as U+FFFE, are drawn as U+FFFD.
class PngCanvas : public Canvas {
 public:
  /// Makes an empty picture of width * scale x height * scale pixels. Throws Error when the picture would be too large
  /// for cairo or for the memory.
  PngCanvas(double width, double height, double scale = 2);
  ~PngCanvas() override;
  void rectangle(Point corner, double width, double height, Rgb fill, std::string_view hint = {},
                 double opacity = 1) override;
  void picture(Point corner, double width, double height, const Image& image) override;
  void line(std::span<const Point> points, Rgb color, double width) override;
  void dot(Point center, double radius, Rgb fill, std::string_view hint = {}) override;
  void text(Point at, std::string_view raw, const TextStyle& style) override;

  /// Returns the contents of the PNG file. Call this function after everything has been drawn.
  std::string take();

 private:
  struct Cairo;
  std::unique_ptr<Cairo> cairo_;
};

/// Returns the contents of a PNG file with this image.
std::string png_of(const Image& image);

}  // namespace heed
