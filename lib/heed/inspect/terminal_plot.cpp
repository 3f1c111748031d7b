#include "heed/inspect/terminal_plot.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdlib>

#include "heed/base/utf8.h"
#include "heed/inspect/terminal_cells.h"

namespace heed {
namespace {

/// The characters that tell the curves apart on a terminal without colours, in the order of the curves.
constexpr std::string_view kMarks = "*+ox#@%";

/// One character of the drawing area.
struct PlotCell {
  std::size_t series = 0;
  unsigned dots = 0;  // the dots of a Braille character, as bits; for a terminal without colours, 1: occupied
};

/// The ticks of an axis, and the range of dots that the axis covers.
struct Axis {
  std::vector<double> ticks;
  int dots = 1;

  /// Returns the dot, 0 to dots - 1, that shows the value.
  int at(double value) const {
    const double share = (value - ticks.front()) / (ticks.back() - ticks.front());
    return std::clamp(static_cast<int>(std::lround(share * (dots - 1))), 0, dots - 1);
  }
};

class TerminalPainter {
 public:
  TerminalPainter(const Plot& plot, const TerminalPlotStyle& style);
  std::string paint();

 private:
  bool colored() const { return has_colors(style_.shading); }
  bool ascii() const { return style_.shading == Shading::ascii; }
  std::string_view mark() const { return cut_mark(style_.shading); }
  void add(std::string line);
  std::string painted(std::size_t series, const std::string& text) const;
  std::string glyph(const PlotCell& cell) const;
  std::string legend_mark(std::size_t series) const;
  void legend();
  void dot(std::size_t series, int x, int y);
  void line(std::size_t series, int x, int y, int to_x, int to_y);
  void draw(std::size_t series);
  void x_axis();

  const Plot& plot_;
  const TerminalPlotStyle& style_;
  int dots_across_, dots_down_;  // number of dots that a character has in each direction
  int columns_ = 0, rows_ = 0, margin_ = 0;
  Axis x_, y_;
  std::vector<std::string> y_labels_;
  std::vector<PlotCell> cells_;
  std::string out_;
};

TerminalPainter::TerminalPainter(const Plot& plot, const TerminalPlotStyle& style)
    : plot_(plot), style_(style), dots_across_(colored() ? 2 : 1), dots_down_(colored() ? 4 : 1) {
  double low_x = INFINITY, high_x = -INFINITY, low_y = INFINITY, high_y = -INFINITY;
  for (const PlotSeries& series : plot.series)
    for (const std::vector<Point>& points : plot_lines(series))
      for (const Point& point : points) {
        low_x = std::min(low_x, point.x);
        high_x = std::max(high_x, point.x);
        low_y = std::min(low_y, point.y);
        high_y = std::max(high_y, point.y);
      }
  if (low_x > high_x) low_x = low_y = 0, high_x = high_y = 1;
  rows_ = std::clamp(style.width / 4, 8, 20);
  y_.ticks = nice_ticks(low_y, high_y, rows_ / 4);
  y_.dots = rows_ * dots_down_;
  y_labels_ = tick_labels(y_.ticks);
  for (const std::string& label : y_labels_) margin_ = std::max(margin_, display_width(label));
  columns_ = std::max(8, style.width - margin_ - 3);
  x_.ticks = nice_ticks(low_x, high_x, std::clamp(columns_ / 10, 2, 8));
  x_.dots = columns_ * dots_across_;
  cells_.resize(static_cast<std::size_t>(columns_) * static_cast<std::size_t>(rows_));
}

void TerminalPainter::add(std::string line) {
  line.resize(line.find_last_not_of(' ') + 1);
  out_ += line + '\n';
}

/// Returns the text with escape sequences for the colour of a series. Points without a line have the terminal's usual
/// colour.
std::string TerminalPainter::painted(std::size_t series, const std::string& text) const {
  if (!colored() || !plot_.series[series].line) return text;
  Rgb c = plot_color(plot_, series);
  // A dark grey would not be visible on a dark terminal.
  if (std::max({c.red, c.green, c.blue}) < 100) c = {150, 150, 150};
  return "\x1b[38;" + color_code(c, style_.shading) + 'm' + text + "\x1b[0m";
}

std::string TerminalPainter::legend_mark(std::size_t series) const {
  if (!plot_.series[series].line) return ascii() ? "." : "•";
  if (colored()) return "━━";
  const auto before = std::count_if(plot_.series.begin(), plot_.series.begin() + static_cast<std::ptrdiff_t>(series),
                                    [](const PlotSeries& one) { return one.line; });
  return std::string(1, kMarks[static_cast<std::size_t>(before) % kMarks.size()]);
}

std::string TerminalPainter::glyph(const PlotCell& cell) const {
  if (cell.dots == 0) return " ";
  if (!colored() || !plot_.series[cell.series].line) return legend_mark(cell.series);
  std::string braille;
  append_utf8(braille, static_cast<char32_t>(0x2800 + cell.dots));
  return braille;
}

/// Writes the names of the series, each behind the mark of its curve, on as few lines as fit.
void TerminalPainter::legend() {
  std::string text;
  int used = 0;
  for (std::size_t i = 0; i < plot_.series.size(); ++i) {
    const std::string mark_of_series = legend_mark(i);
    const int room = style_.width - display_width(mark_of_series) - 1;
    const std::string name = fit_width(visible_text(plot_.series[i].name), room, mark());
    const int wide = display_width(mark_of_series) + 1 + display_width(name);
    if (used > 0 && used + 3 + wide > style_.width) {
      add(std::move(text));
      text.clear();
      used = 0;
    }
    text += (used > 0 ? "   " : "") + painted(i, mark_of_series) + ' ' + name;
    used += (used > 0 ? 3 : 0) + wide;
  }
  if (used > 0) add(std::move(text));
}

/// Sets a dot of a series; x counts from the left and y from the bottom. Where two series meet in one character, the
/// later one takes the character.
void TerminalPainter::dot(std::size_t series, int x, int y) {
  const int row = rows_ - 1 - y / dots_down_;
  PlotCell& cell = cells_[static_cast<std::size_t>(row * columns_ + x / dots_across_)];
  // The bits of a Braille character's dots, by column and by row from the top.
  constexpr std::array<std::array<unsigned, 4>, 2> bits{{{0x01, 0x02, 0x04, 0x40}, {0x08, 0x10, 0x20, 0x80}}};
  if (cell.series != series) cell = {series, 0};
  cell.dots |= colored() ? bits[static_cast<std::size_t>(x % 2)][static_cast<std::size_t>(3 - y % 4)] : 1U;
}

/// Sets the dots of a straight line, without a gap (Bresenham's algorithm).
void TerminalPainter::line(std::size_t series, int x, int y, int to_x, int to_y) {
  const int across = std::abs(to_x - x), up = std::abs(to_y - y), steps = std::max(across, up);
  for (int i = 0; i <= steps; ++i) {
    const auto between = [&](int from, int to) {
      return steps == 0 ? from : from + static_cast<int>(std::lround(static_cast<double>(to - from) * i / steps));
    };
    dot(series, between(x, to_x), between(y, to_y));
  }
}

void TerminalPainter::draw(std::size_t series) {
  for (const std::vector<Point>& points : plot_lines(plot_.series[series]))
    for (std::size_t i = 0; i < points.size(); ++i) {
      const Point& from = points[plot_.series[series].line && i > 0 ? i - 1 : i];
      line(series, x_.at(from.x), y_.at(from.y), x_.at(points[i].x), y_.at(points[i].y));
    }
}

/// Writes the x axis with its ticks, the labels of the ticks, and the label of the axis.
void TerminalPainter::x_axis() {
  const std::vector<std::string> labels = tick_labels(x_.ticks);
  std::string axis, below;
  int last = -1, used = 0;  // the column of the last tick; the columns that `below` takes
  for (std::size_t i = 0; i < labels.size(); ++i) {
    const int column = x_.at(x_.ticks[i]) / dots_across_, wide = display_width(labels[i]);
    for (++last; last < column; ++last) axis += ascii() ? "-" : "─";
    axis += ascii() ? "+" : "┬";
    const int at = std::clamp(margin_ + 2 + column - wide / 2, 0, std::max(0, style_.width - wide));
    if (at < used + (used > 0 ? 1 : 0)) continue;
    below += std::string(static_cast<std::size_t>(at - used), ' ') + labels[i];
    used = at + wide;
  }
  const std::string space(static_cast<std::size_t>(margin_ + 1), ' ');
  add(space + (ascii() ? "+" : "└") + axis);
  add(below);
  const std::string label = fit_width(visible_text(plot_.x_label), columns_, mark());
  add(space + std::string(static_cast<std::size_t>((columns_ - display_width(label)) / 2 + 1), ' ') + label);
}

std::string TerminalPainter::paint() {
  out_ += caption_lines(visible_text(plot_.title), style_.width, style_.shading);
  legend();
  if (!plot_.left_label.empty()) add(fit_width(visible_text(plot_.left_label), style_.width, mark()));
  for (const bool lines : {false, true})
    for (std::size_t i = 0; i < plot_.series.size(); ++i)
      if (plot_.series[i].line == lines) draw(i);
  for (int row = 0; row < rows_; ++row) {
    std::string label;
    for (std::size_t i = 0; i < y_.ticks.size(); ++i)
      if (rows_ - 1 - y_.at(y_.ticks[i]) / dots_down_ == row) label = y_labels_[i];
    std::string text =
        pad_left(label, margin_) + (ascii() ? (label.empty() ? " |" : " +") : (label.empty() ? " │" : " ┤"));
    for (int column = 0; column < columns_; ++column) {
      const PlotCell& cell = cells_[static_cast<std::size_t>(row * columns_ + column)];
      text += cell.dots == 0 ? " " : painted(cell.series, glyph(cell));
    }
    add(std::move(text));
  }
  x_axis();
  return out_;
}

}  // namespace

std::string terminal_plot(const Plot& plot, const TerminalPlotStyle& style) {
  return TerminalPainter(plot, style).paint();
}

}  // namespace heed
