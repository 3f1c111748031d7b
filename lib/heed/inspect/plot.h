#pragma once

#include <string>
#include <vector>

#include "heed/inspect/canvas.h"

namespace heed {

/// One line of a plot. Points with a coordinate that is not finite are left out.
struct PlotSeries {
  std::string name;
  std::vector<Point> points;  ///< in order of x
  bool right = false;         ///< measured by the axis at the right, which starts at 0: for scores
  bool dots = false;          ///< each point is marked and tells its values under the pointer: for few points
};

struct Plot {
  std::string title, x_label, left_label, right_label;
  std::vector<PlotSeries> series;
};

/// Evenly spaced round values (1, 2 or 5 times a power of ten) around [low, high], about `wanted` of them; the first is
/// at most `low` and the last at least `high`. Equal bounds are widened.
std::vector<double> nice_ticks(double low, double high, int wanted);

/// A learning curve as one self-contained SVG: lines over a common x, one or two y axes (the right one only where a
/// series uses it), a legend. Works with one point and with none. Lines of very many points are averaged down to what a
/// picture can show.
std::string plot_svg(const Plot& plot);

/// Writes the SVG so that `path` always holds a whole picture, also while a viewer reads it. Throws Error.
void write_plot(const std::string& path, const Plot& plot);

}  // namespace heed
