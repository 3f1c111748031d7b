#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <vector>

#include "heed/inspect/canvas.h"

namespace heed {

/// One curve of a plot, or a set of points. Points with a coordinate that is infinite or not a number are left out.
struct PlotSeries {
  std::string name;
  std::vector<Point> points;  ///< the points of the curve, in the order of their x
  /// True if the right y axis belongs to this curve and not the left one. The right axis includes 0; it is used for
  /// scores, such as BLEU.
  bool right = false;
  /// True if each point is also drawn as a dot, which shows the point's value when the pointer is over the dot. For
  /// curves with few points.
  bool dots = false;
  /// False if no line joins the points: they are only drawn as grey dots, below all curves.
  bool line = true;
  /// True if the line has a gap where points are left out; otherwise it goes on from the point before to the point
  /// after them.
  bool gaps = false;
};

/// A plot of curves, such as learning curves, with the labels of the axes and a title.
struct Plot {
  std::string title, x_label, left_label, right_label;
  std::vector<PlotSeries> series;
  /// True if x counts something, such as epochs: the ticks of the x axis are then whole numbers, and the axis begins at
  /// 0 and ends at the last point. False if x is any number.
  bool counts = true;
};

/// Returns evenly spaced round values (multiples of 1, 2 or 5 times a power of ten) for the ticks of an axis, with
/// about `wanted` steps. The first value is at most `low`, and the last value is at least `high`. If `low` and `high`
/// are equal or differ only in their last digits, the range is widened first.
std::vector<double> nice_ticks(double low, double high, int wanted);

/// Returns the values of an axis' ticks as short labels, such as "1.5", "20K" or "3M", with enough digits to tell
/// neighbouring ticks apart.
std::vector<std::string> tick_labels(std::span<const double> ticks);

/// Returns the parts of a curve that are drawn as one line each. A curve without gaps is one part. A curve of very many
/// points is reduced to fewer points, which are means; of very many points without a line, only some are kept.
std::vector<std::vector<Point>> plot_lines(const PlotSeries& series);

/// Returns the colour of the plot's series number `index`: grey for points without a line, else a colour of its own
/// among the curves.
Rgb plot_color(const Plot& plot, std::size_t index);

/// Draws a plot as an SVG picture that needs no other files, and returns the contents of the SVG file: curves over a
/// common x axis, one or two y axes (a right axis only if a curve uses it), and a legend. A curve may have one point or
/// none.
std::string plot_svg(const Plot& plot);
/// Draws the same picture as plot_svg() as PNG, and returns the contents of the PNG file.
std::string plot_png(const Plot& plot);

/// Throws UsageError unless `path`, the value of the command-line option `option`, is empty or the name of a picture,
/// which ends in .svg or .png.
void check_picture(const std::string& option, const std::string& path);

/// Writes the plot as a file that appears at `path` in one step, so that a viewer never reads an unfinished file. The
/// file is a PNG picture if the name ends in .png, else an SVG picture. Throws Error when the file cannot be written.
void write_plot(const std::string& path, const Plot& plot);

}  // namespace heed
