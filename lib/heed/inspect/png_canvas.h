#pragma once

#include <memory>
#include <string>

#include "heed/inspect/canvas.h"

namespace heed {

/// A PNG on white ground, drawn by cairo; each unit is `scale` pixels. Hints are left out. Text takes its letters from
/// any installed font that has them.
class PngCanvas : public Canvas {
 public:
  /// Throws Error for a picture larger than PNG files and memory should be.
  PngCanvas(double width, double height, double scale = 2);
  ~PngCanvas() override;
  void rectangle(Point corner, double width, double height, Rgb fill, std::string_view hint = {}) override;
  void line(std::span<const Point> points, Rgb color, double width) override;
  void dot(Point center, double radius, Rgb fill, std::string_view hint = {}) override;
  void text(Point at, std::string_view text, const TextStyle& style) override;

  /// The finished file's bytes.
  std::string take();

 private:
  struct Cairo;
  std::unique_ptr<Cairo> cairo_;
};

}  // namespace heed
