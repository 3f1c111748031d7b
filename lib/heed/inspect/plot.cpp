#include "heed/inspect/plot.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>

#include "heed/base/error.h"
#include "heed/base/number_text.h"
#include "heed/base/streams.h"
#include "heed/inspect/png_canvas.h"
#include "heed/inspect/svg_canvas.h"

namespace heed {
namespace {

constexpr double kNarrowest = 860, kHeight = 480, kPlotFont = 12, kPlotTitle = 16;
constexpr double kTop = 64, kBottom = 58, kLeft = 74, kRight = 74, kNoAxis = 30;
constexpr double kDot = 3.5, kSmallDot = 2;  // radius of a dot
// A curve has at most kMostPoints points. A series without a line has at most kMostDots, and small ones where it has
// more than kFewDots.
constexpr std::size_t kMostPoints = 600, kFewDots = 200, kMostDots = 2000;
constexpr Rgb kGrid = {228, 228, 228}, kAxis = {120, 120, 120}, kPoints = {140, 140, 140}, kText = {34, 34, 34};

/// The colours of the curves. Colour-blind readers can tell these colours apart, also in grey (after Okabe and Ito,
/// 2008).
constexpr std::array<Rgb, 7> kColors{
    {{0, 114, 178}, {213, 94, 0}, {0, 158, 115}, {204, 121, 167}, {230, 159, 0}, {86, 180, 233}, {70, 70, 70}}};

bool finite(const Point& point) {
  return std::isfinite(point.x) && std::isfinite(point.y);
}

/// The range from the smallest to the largest of the values that were passed to include().
struct Range {
  double low = INFINITY, high = -INFINITY;
  bool empty() const { return low > high; }
  void include(double value) {
    low = std::min(low, value);
    high = std::max(high, value);
  }
};

/// Returns fewer points if there are more than `most`: the points are divided into `most` parts, and each part is
/// replaced by the mean of its points, or, if `mean` is false, by its first point.
std::vector<Point> thinned(const std::vector<Point>& points, std::size_t most, bool mean) {
  if (points.size() <= most) return points;
  std::vector<Point> out;
  for (std::size_t i = 0; i < most; ++i) {
    const std::size_t begin = i * points.size() / most, end = (i + 1) * points.size() / most;
    Point sum;
    for (std::size_t k = begin; k < end; ++k) sum = {sum.x + points[k].x, sum.y + points[k].y};
    const auto count = static_cast<double>(end - begin);
    out.push_back(mean ? Point{sum.x / count, sum.y / count} : points[begin]);
  }
  return out;
}

/// The legend of a plot is one line. Each curve has a coloured mark and its name there. These are the widths of a mark
/// and of the space behind a name, in pixels.
constexpr double kMark = 26, kBehindName = 18;

double legend_width(const PlotSeries& series) {
  return kMark + text_width(series.name, kPlotFont) + kBehindName;
}

/// Returns the width of the picture in pixels, which is at least the width of the plot's title and legend.
double width_of(const Plot& plot) {
  double legend = kLeft;
  for (const PlotSeries& series : plot.series) legend += legend_width(series);
  return std::max({kNarrowest, legend, kLeft + text_width(plot.title, kPlotTitle, true) + kBehindName});
}

/// Draws the axes, the legend and the curves of a plot on a canvas of the size width_of(plot) x kHeight.
class PlotPainter {
 public:
  PlotPainter(const Plot& plot, Canvas& canvas);
  void paint();

 private:
  struct Axis {
    std::vector<double> ticks;
    double from = 0, to = 1;  // pixel coordinates of the first and the last tick
    double at(double value) const {
      return from + (value - ticks.front()) / (ticks.back() - ticks.front()) * (to - from);
    }
  };

  void end_x_axis_at_last_point(const Range& x);
  void frame();
  void legend();
  void series(std::size_t index);
  Rgb color(std::size_t index) const { return plot_color(plot_, index); }
  /// Returns the colour for the labels of the right axis (if `right` is true) or the left axis: the colour of the curve
  /// if the plot has two axes and only one curve uses this axis, else the colour of all other texts.
  Rgb axis_color(bool right) const;

  const Plot& plot_;
  Canvas& canvas_;
  const double width_;
  std::vector<std::vector<std::vector<Point>>> lines_;  // for each series, the parts of its line
  bool has_right_ = false;
  Axis x_, left_, right_;
};

PlotPainter::PlotPainter(const Plot& plot, Canvas& canvas) : plot_(plot), canvas_(canvas), width_(width_of(plot)) {
  Range x, left, right;
  right.include(0);
  for (const PlotSeries& one : plot.series) {
    has_right_ = has_right_ || one.right;
    lines_.push_back(plot_lines(one));
    for (const std::vector<Point>& line : lines_.back())
      for (const Point& point : line) {
        x.include(point.x);
        (one.right ? right : left).include(point.y);
      }
  }
  const auto ticks = [](const Range& range, int wanted) {
    return range.empty() ? nice_ticks(0, 1, wanted) : nice_ticks(range.low, range.high, wanted);
  };
  // For x in epochs, the x axis gets at most as many ticks as there are whole numbers in its range, so that no tick is
  // at half an epoch.
  const double whole = plot.counts ? std::clamp(std::floor(x.high - x.low), 1.0, 8.0) : 8;
  x_ = {ticks(x, x.empty() ? 1 : static_cast<int>(whole)), kLeft, width_ - (has_right_ ? kRight : kNoAxis)};
  left_ = {ticks(left, 6), kHeight - kBottom, kTop};
  right_ = {ticks(right, 6), kHeight - kBottom, kTop};
  if (plot.counts && !x.empty() && x.high > x.low) end_x_axis_at_last_point(x);
}

/// Removes the ticks behind the last point of the curves, and stretches the x axis so that the last point is at the
/// right end.
void PlotPainter::end_x_axis_at_last_point(const Range& x) {
  const double begin = std::max(x_.ticks.front(), std::min(x.low, 0.0)), end = x.high;
  const double scale = (x_.to - x_.from) / (end - begin);
  while (x_.ticks.size() > 2 && x_.ticks.back() > end) x_.ticks.pop_back();
  x_.to = x_.from + (x_.ticks.back() - begin) * scale;
  x_.from += (x_.ticks.front() - begin) * scale;
}

Rgb PlotPainter::axis_color(bool right) const {
  std::size_t count = 0, last = 0;
  for (std::size_t i = 0; i < plot_.series.size(); ++i)
    if (plot_.series[i].right == right) ++count, last = i;
  return has_right_ && count == 1 ? color(last) : kText;
}

void PlotPainter::frame() {
  const double end = width_ - (has_right_ ? kRight : kNoAxis), floor = kHeight - kBottom;
  const std::vector<std::string> x_labels = tick_labels(x_.ticks), left_labels = tick_labels(left_.ticks),
                                 right_labels = tick_labels(right_.ticks);
  canvas_.text({kLeft, 26}, plot_.title, {.size = kPlotTitle, .bold = true});
  for (std::size_t i = 0; i < left_.ticks.size(); ++i) {
    const double y = left_.at(left_.ticks[i]);
    const std::array<Point, 2> line{{{kLeft, y}, {end, y}}};
    canvas_.line(line, kGrid, 1);
    canvas_.text({kLeft - 8, y + 4}, left_labels[i],
                 {.size = kPlotFont, .anchor = Anchor::end, .color = axis_color(false)});
  }
  if (has_right_)
    for (std::size_t i = 0; i < right_.ticks.size(); ++i)
      canvas_.text({end + 8, right_.at(right_.ticks[i]) + 4}, right_labels[i],
                   {.size = kPlotFont, .color = axis_color(true)});
  for (std::size_t i = 0; i < x_.ticks.size(); ++i) {
    const double x = x_.at(x_.ticks[i]);
    const std::array<Point, 2> line{{{x, floor}, {x, floor + 5}}};
    canvas_.line(line, kAxis, 1);
    canvas_.text({x, floor + 20}, x_labels[i], {.size = kPlotFont, .anchor = Anchor::middle});
  }
  const std::array<Point, 2> base{{{kLeft, floor}, {end, floor}}};
  canvas_.line(base, kAxis, 1);
  canvas_.text({(kLeft + end) / 2, kHeight - 14}, plot_.x_label, {.size = kPlotFont, .anchor = Anchor::middle});
  const double middle = (kTop + floor) / 2;
  canvas_.text({20, middle}, plot_.left_label,
               {.size = kPlotFont, .anchor = Anchor::middle, .rotate = -90, .color = axis_color(false)});
  if (has_right_)
    canvas_.text({width_ - 18, middle}, plot_.right_label,
                 {.size = kPlotFont, .anchor = Anchor::middle, .rotate = 90, .color = axis_color(true)});
}

void PlotPainter::legend() {
  double x = kLeft;
  for (std::size_t i = 0; i < plot_.series.size(); ++i) {
    const std::array<Point, 2> line{{{x, 44}, {x + 20, 44}}};
    if (plot_.series[i].line)
      canvas_.line(line, color(i), 2.5);
    else
      canvas_.dot({x + 10, 44}, kDot, color(i));
    canvas_.text({x + kMark, 48}, plot_.series[i].name, {.size = kPlotFont});
    x += legend_width(plot_.series[i]);
  }
}

void PlotPainter::series(std::size_t index) {
  const PlotSeries& one = plot_.series[index];
  const Axis& y = one.right ? right_ : left_;
  for (const std::vector<Point>& points : lines_[index]) {
    std::vector<Point> line;
    for (const Point& point : points) line.push_back({x_.at(point.x), y.at(point.y)});
    if (one.line && line.size() > 1) canvas_.line(line, color(index), 2);
    if (one.line && !one.dots && line.size() != 1) continue;
    for (std::size_t i = 0; i < line.size(); ++i)
      canvas_.dot(line[i], one.line || line.size() <= kFewDots ? kDot : kSmallDot, color(index),
                  one.name + ": " + number_text("%.5g", points[i].y) + " at " + number_text("%.5g", points[i].x));
  }
}

void PlotPainter::paint() {
  frame();
  legend();
  for (const bool lines : {false, true})
    for (std::size_t i = 0; i < plot_.series.size(); ++i)
      if (plot_.series[i].line == lines) series(i);
}

}  // namespace

std::vector<double> nice_ticks(double low, double high, int wanted) {
  // A range so narrow that a double has no digits left for its ticks is widened like an empty one.
  const double size = std::max(std::abs(low), std::abs(high));
  if (!(high - low > 1e-12 * size)) {
    const double around = size == 0 ? 1 : size * 0.1;
    low -= around;
    high += around;
  }
  const double rough = (high - low) / std::max(1, wanted);
  const double power = std::pow(10, std::floor(std::log10(rough)));
  const double share = rough / power;
  const double step = power * (share <= 1.0001 ? 1 : share <= 2.0001 ? 2 : share <= 5.0001 ? 5 : 10);
  const double first = std::floor(low / step + 1e-9), last = std::ceil(high / step - 1e-9);
  std::vector<double> ticks;
  for (double i = first; i <= last; ++i) ticks.push_back(i * step + 0.0);
  return ticks;
}

std::vector<std::string> tick_labels(std::span<const double> ticks) {
  double largest = 0;
  for (const double tick : ticks) largest = std::max(largest, std::abs(tick));
  const double step = ticks.size() > 1 ? ticks[1] - ticks[0] : largest;
  // One digit more than the ratio of the largest tick to the step has, so that neighbouring ticks differ.
  const int digits = step > 0 && largest > 0 ? std::clamp(static_cast<int>(std::log10(largest / step)) + 2, 6, 15) : 6;
  std::vector<std::string> out;
  for (const double tick : ticks) {
    const double size = largest < 1e12 ? std::abs(tick) : 0;  // with an exponent, a suffix makes no label shorter
    const auto [unit, suffix] = size >= 1e6   ? std::pair(1e6, "M")
                                : size >= 1e4 ? std::pair(1e3, "K")
                                              : std::pair(1.0, "");
    char text[32];
    std::snprintf(text, sizeof text, "%.*g%s", digits, tick / unit, suffix);
    out.emplace_back(text);
  }
  return out;
}

std::vector<std::vector<Point>> plot_lines(const PlotSeries& series) {
  std::vector<std::vector<Point>> lines(1);
  for (const Point& point : series.points) {
    if (finite(point))
      lines.back().push_back(point);
    else if (series.gaps && !lines.back().empty())
      lines.emplace_back();
  }
  for (std::vector<Point>& line : lines) line = thinned(line, series.line ? kMostPoints : kMostDots, series.line);
  return lines;
}

Rgb plot_color(const Plot& plot, std::size_t index) {
  if (!plot.series[index].line) return kPoints;
  const auto before = std::count_if(plot.series.begin(), plot.series.begin() + static_cast<std::ptrdiff_t>(index),
                                    [](const PlotSeries& one) { return one.line; });
  return kColors[static_cast<std::size_t>(before) % kColors.size()];
}

std::string plot_svg(const Plot& plot) {
  SvgCanvas canvas(width_of(plot), kHeight, plot.title);
  PlotPainter(plot, canvas).paint();
  return canvas.take();
}

std::string plot_png(const Plot& plot) {
  PngCanvas canvas(width_of(plot), kHeight);
  PlotPainter(plot, canvas).paint();
  return canvas.take();
}

void check_picture(const std::string& option, const std::string& path) {
  if (path.empty() || has_ending(path, ".svg") || has_ending(path, ".png")) return;
  throw UsageError(option + ' ' + path + ": the name of a picture ends in .svg or .png");
}

void write_plot(const std::string& path, const Plot& plot) {
  OutputFile file(path);
  file.stream() << (has_ending(path, ".png") ? plot_png(plot) : plot_svg(plot));
  file.commit();
}

}  // namespace heed
