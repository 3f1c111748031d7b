#pragma once

#include <string>
#include <vector>

#include "heed/inspect/canvas.h"

namespace heed {

/// One curve of a plot. Points with a coordinate that is not finite are left out.
struct PlotSeries {
  std::string name;
  std::vector<Point> points;  ///< in order of x
  /// True for a curve that is measured by the right axis, which starts at 0: for scores.
  bool right = false;
  /// True for a curve whose points are drawn as dots that show their values under the pointer: for few points.
  bool dots = false;
};

/// A learning curve with its labels.
struct Plot {
  std::string title, x_label, left_label, right_label;
  std::vector<PlotSeries> series;
};

/// Returns about `wanted` evenly spaced round values (multiples of 1, 2 or 5 times a power of ten) that cover [low,
/// high]: the first is at most `low`, and the last is at least `high`. If the bounds are equal, the range is widened
/// first.
std::vector<double> nice_ticks(double low, double high, int wanted);

/// Draws a plot as an SVG file that needs no other files, and returns the file's contents: curves over a common x axis,
/// one or two y axes (a right axis only if a series uses it), and a legend. A series may have one point or none. A
/// curve of very many points is averaged down to the number of points that a picture can show.
std::string plot_svg(const Plot& plot);

/// Writes the plot's SVG file in one step, so that a viewer always finds a complete picture at `path`. Throws Error.
void write_plot(const std::string& path, const Plot& plot);

}  // namespace heed
