#pragma once

#include <string>
#include <vector>

#include "heed/inspect/canvas.h"

namespace heed {

/// One curve of a plot. Points with a coordinate that is infinite or not a number are left out.
struct PlotSeries {
  std::string name;
  std::vector<Point> points;  ///< the points of the curve, in the order of their x
  /// True if the right y axis belongs to this curve and not the left one. The right axis includes 0; it is used for
  /// scores, such as BLEU.
  bool right = false;
  /// True if each point is also drawn as a dot, which shows the point's value when the pointer is over the dot. For
  /// curves with few points.
  bool dots = false;
};

/// A plot of learning curves, with the labels of the axes and a title.
struct Plot {
  std::string title, x_label, left_label, right_label;
  std::vector<PlotSeries> series;
};

/// Returns evenly spaced round values (multiples of 1, 2 or 5 times a power of ten) for the ticks of an axis, with
/// about `wanted` steps. The first value is at most `low`, and the last value is at least `high`. If `low` and `high`
/// are equal, the range is widened first.
std::vector<double> nice_ticks(double low, double high, int wanted);

/// Draws a plot as an SVG picture that needs no other files, and returns the contents of the SVG file: curves over a
/// common x axis, one or two y axes (a right axis only if a curve uses it), and a legend. A curve may have one point or
/// none. A curve of very many points is reduced to fewer points, which are means.
std::string plot_svg(const Plot& plot);

/// Writes the plot as an SVG file that appears at `path` in one step, so that a viewer never reads an unfinished file.
/// Throws Error when the file cannot be written.
void write_plot(const std::string& path, const Plot& plot);

}  // namespace heed
