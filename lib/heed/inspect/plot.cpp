#include "heed/inspect/plot.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>

#include "heed/base/streams.h"
#include "heed/inspect/svg_canvas.h"

namespace heed {
namespace {

constexpr double kNarrowest = 860, kHeight = 480, kFont = 12, kTitle = 16;
constexpr double kTop = 64, kBottom = 58, kLeft = 74, kRight = 74, kNoAxis = 30;
constexpr std::size_t kMostPoints = 600;
constexpr Rgb kGrid = {228, 228, 228}, kAxis = {120, 120, 120}, kText = {34, 34, 34};

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

/// Returns the points of a curve. If the curve has more than kMostPoints points, it is divided into kMostPoints parts,
/// and each part is replaced by the mean of its points.
std::vector<Point> thinned(const PlotSeries& series) {
  std::vector<Point> points;
  std::copy_if(series.points.begin(), series.points.end(), std::back_inserter(points), finite);
  if (points.size() <= kMostPoints) return points;
  std::vector<Point> out;
  for (std::size_t i = 0; i < kMostPoints; ++i) {
    const std::size_t begin = i * points.size() / kMostPoints, end = (i + 1) * points.size() / kMostPoints;
    Point mean;
    for (std::size_t k = begin; k < end; ++k) mean = {mean.x + points[k].x, mean.y + points[k].y};
    const auto count = static_cast<double>(end - begin);
    out.push_back({mean.x / count, mean.y / count});
  }
  return out;
}

/// Returns a value as a short label for a plot's axis: "1.5", "20K", "3M".
std::string tick_text(double value) {
  char out[32];
  const double size = std::abs(value);
  if (size >= 1e6)
    std::snprintf(out, sizeof out, "%gM", value / 1e6);
  else if (size >= 1e4)
    std::snprintf(out, sizeof out, "%gK", value / 1e3);
  else
    std::snprintf(out, sizeof out, "%g", value);
  return out;
}

std::string value_text(double value) {
  char out[32];
  std::snprintf(out, sizeof out, "%.5g", value);
  return out;
}

/// The legend of a plot is one line. Each curve has a coloured mark and its name there. These are the widths of a mark
/// and of the space behind a name, in pixels.
constexpr double kMark = 26, kBehindName = 18;

double legend_width(const PlotSeries& series) {
  return kMark + text_width(series.name, kFont) + kBehindName;
}

/// Returns the width of the picture in pixels, which is at least the width of the plot's title and legend.
double width_of(const Plot& plot) {
  double legend = kLeft;
  for (const PlotSeries& series : plot.series) legend += legend_width(series);
  return std::max({kNarrowest, legend, kLeft + text_width(plot.title, kTitle, true) + kBehindName});
}

/// Draws the axes, the legend and the curves of a plot on an SVG canvas.
class Painter {
 public:
  explicit Painter(const Plot& plot);
  std::string paint();

 private:
  struct Axis {
    std::vector<double> ticks;
    double from = 0, to = 1;  // pixel coordinates of the first and the last tick
    double at(double value) const {
      return from + (value - ticks.front()) / (ticks.back() - ticks.front()) * (to - from);
    }
  };

  void frame();
  void legend();
  void series(std::size_t index);
  Rgb color(std::size_t index) const { return kColors[index % kColors.size()]; }
  /// Returns the colour for the labels of the right axis (if `right` is true) or the left axis: the colour of the curve
  /// if the plot has two axes and only one curve uses this axis, else the colour of all other texts.
  Rgb axis_color(bool right) const;

  const Plot& plot_;
  const double width_;
  std::vector<std::vector<Point>> points_;
  bool has_right_ = false;
  Axis x_, left_, right_;
  SvgCanvas canvas_;
};

Painter::Painter(const Plot& plot) : plot_(plot), width_(width_of(plot)), canvas_(width_, kHeight, plot.title) {
  Range x, left, right;
  right.include(0);
  for (const PlotSeries& one : plot.series) {
    has_right_ = has_right_ || one.right;
    points_.push_back(thinned(one));
    for (const Point& point : points_.back()) {
      x.include(point.x);
      (one.right ? right : left).include(point.y);
    }
  }
  const auto ticks = [](const Range& range, int wanted) {
    return range.empty() ? nice_ticks(0, 1, wanted) : nice_ticks(range.low, range.high, wanted);
  };
  // The x axis gets at most as many ticks as there are whole numbers in its range: for x in epochs, no tick is at half
  // an epoch.
  const double whole = std::clamp(std::floor(x.high - x.low), 1.0, 8.0);
  x_ = {ticks(x, x.empty() ? 1 : static_cast<int>(whole)), kLeft, width_ - (has_right_ ? kRight : kNoAxis)};
  left_ = {ticks(left, 6), kHeight - kBottom, kTop};
  right_ = {ticks(right, 6), kHeight - kBottom, kTop};
  // The x axis ends at the last point of the curves. The ticks behind the last point are removed, and the axis is
  // stretched so that the last point is at the right end.
  if (!x.empty() && x.high > x.low) {
    const double begin = std::max(x_.ticks.front(), std::min(x.low, 0.0)), end = x.high;
    const double scale = (x_.to - x_.from) / (end - begin);
    while (x_.ticks.size() > 2 && x_.ticks.back() > end) x_.ticks.pop_back();
    x_.to = x_.from + (x_.ticks.back() - begin) * scale;
    x_.from += (x_.ticks.front() - begin) * scale;
  }
}

Rgb Painter::axis_color(bool right) const {
  std::size_t count = 0, last = 0;
  for (std::size_t i = 0; i < plot_.series.size(); ++i)
    if (plot_.series[i].right == right) ++count, last = i;
  return has_right_ && count == 1 ? color(last) : kText;
}

void Painter::frame() {
  const double end = width_ - (has_right_ ? kRight : kNoAxis), floor = kHeight - kBottom;
  canvas_.text({kLeft, 26}, plot_.title, {.size = kTitle, .bold = true});
  for (const double tick : left_.ticks) {
    const std::array<Point, 2> line{{{kLeft, left_.at(tick)}, {end, left_.at(tick)}}};
    canvas_.line(line, kGrid, 1);
    canvas_.text({kLeft - 8, left_.at(tick) + 4}, tick_text(tick),
                 {.size = kFont, .anchor = Anchor::end, .color = axis_color(false)});
  }
  if (has_right_)
    for (const double tick : right_.ticks)
      canvas_.text({end + 8, right_.at(tick) + 4}, tick_text(tick), {.size = kFont, .color = axis_color(true)});
  for (const double tick : x_.ticks) {
    const std::array<Point, 2> line{{{x_.at(tick), floor}, {x_.at(tick), floor + 5}}};
    canvas_.line(line, kAxis, 1);
    canvas_.text({x_.at(tick), floor + 20}, tick_text(tick), {.size = kFont, .anchor = Anchor::middle});
  }
  const std::array<Point, 2> base{{{kLeft, floor}, {end, floor}}};
  canvas_.line(base, kAxis, 1);
  canvas_.text({(kLeft + end) / 2, kHeight - 14}, plot_.x_label, {.size = kFont, .anchor = Anchor::middle});
  const double middle = (kTop + floor) / 2;
  canvas_.text({20, middle}, plot_.left_label,
               {.size = kFont, .anchor = Anchor::middle, .rotate = -90, .color = axis_color(false)});
  if (has_right_)
    canvas_.text({width_ - 18, middle}, plot_.right_label,
                 {.size = kFont, .anchor = Anchor::middle, .rotate = 90, .color = axis_color(true)});
}

void Painter::legend() {
  double x = kLeft;
  for (std::size_t i = 0; i < plot_.series.size(); ++i) {
    const std::array<Point, 2> line{{{x, 44}, {x + 20, 44}}};
    canvas_.line(line, color(i), 2.5);
    canvas_.text({x + kMark, 48}, plot_.series[i].name, {.size = kFont});
    x += legend_width(plot_.series[i]);
  }
}

void Painter::series(std::size_t index) {
  const PlotSeries& one = plot_.series[index];
  const Axis& y = one.right ? right_ : left_;
  std::vector<Point> line;
  for (const Point& point : points_[index]) line.push_back({x_.at(point.x), y.at(point.y)});
  if (line.size() > 1) canvas_.line(line, color(index), 2);
  if (!one.dots && line.size() != 1) return;
  for (std::size_t i = 0; i < line.size(); ++i)
    canvas_.dot(line[i], 3.5, color(index),
                one.name + ": " + value_text(points_[index][i].y) + " at " + value_text(points_[index][i].x));
}

std::string Painter::paint() {
  frame();
  legend();
  for (std::size_t i = 0; i < points_.size(); ++i) series(i);
  return canvas_.take();
}

}  // namespace

std::vector<double> nice_ticks(double low, double high, int wanted) {
  if (!(high > low)) {
    const double around = low == 0 ? 1 : std::abs(low) * 0.1;
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

std::string plot_svg(const Plot& plot) {
  return Painter(plot).paint();
}

void write_plot(const std::string& path, const Plot& plot) {
  OutputFile file(path);
  file.stream() << plot_svg(plot);
  file.commit();
}

}  // namespace heed
