#include "heed/inspect/attention_picture.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <optional>

#include "heed/base/number_text.h"
#include "heed/base/terminal.h"
#include "heed/inspect/color_scale.h"
#include "heed/inspect/picture_sizes.h"
#include "heed/inspect/png_canvas.h"
#include "heed/inspect/svg_canvas.h"

namespace heed {
namespace {

constexpr double kCell = 20, kGap = 28;
// The greatest width of a row of attention maps, in pixels. A map that would make the row wider starts a new row.
constexpr double kWidestRow = 1800;
// A token that takes more columns than this in a fixed-width font is cut.
constexpr int kLongestToken = 24;
// The room for the labels and for the name of the axis below a map with axes, for the colour scale below the name, and
// for the name of the axis at the left of the map, in pixels.
constexpr double kBelow = 42, kOwnScale = 34, kAxisName = 20;
// The size that both sides of a map with axes have, in pixels, where the limits of the cells' size allow it.
constexpr double kNumbersSide = 440;
// The tokens above the columns of a map are rotated by this angle, in degrees clockwise.
constexpr double kSlant = -55;
constexpr double kSin = 0.82, kCos = 0.58;

/// A text of the picture, its position and its style.
struct Label {
  Point at;
  std::string text;
  TextStyle style;
};

/// An attention map and its position in the picture.
struct Placed {
  const AttentionMap* map;
  Point corner;      // the upper left corner of the map's cells
  ColorScale scale;  // of the map's own weights
};

/// The positions of all texts and maps of a picture, and the picture's size. They are computed before anything is
/// drawn, since a canvas must know its size when it is made.
struct Layout {
  std::vector<Label> labels;
  std::vector<Placed> maps;
  double width = 0, height = 0;
  // The colour scale of all maps; absent if each map has a colour scale of its own, which is drawn below the map.
  std::optional<ColorScale> scale;
};

std::string shown(const std::string& token) {
  return fit_width(visible_token(token), kLongestToken);
}

double widest(const std::vector<std::string>& tokens) {
  double width = 0;
  for (const std::string& token : tokens) width = std::max(width, text_width(shown(token), kPictureFont));
  return width;
}

/// Returns the size, in pixels, of a map's cells along a side that has `cells` cells.
double cell_size(const AttentionMap& map, std::size_t cells) {
  if (!map.axes) return kCell;
  return std::clamp(std::floor(kNumbersSide / std::max(static_cast<double>(cells), 1.0)), 2.0, 40.0);
}
double cell_width(const AttentionMap& map) {
  return cell_size(map, map.columns.size());
}
double cell_height(const AttentionMap& map) {
  return cell_size(map, map.rows.size());
}

/// Returns the distance, in cells, from one label to the next along a side of a map with axes, if a label takes `room`
/// pixels. Distances are 1, 2 or 5 times a power of ten.
std::size_t label_step(double room, double cell) {
  std::size_t step = 1;
  for (std::size_t i = 0; static_cast<double>(step) * cell < room; ++i) step = i % 3 == 1 ? step / 2 * 5 : step * 2;
  return step;
}

/// Returns the index of the first label that is shown along a side of a map with axes, if every `step`-th label is
/// shown: such that 0, if it is among the labels, is shown.
std::size_t first_label(const std::vector<std::string>& labels, std::size_t step) {
  const auto zero = std::find(labels.begin(), labels.end(), "0");
  return zero == labels.end() ? 0 : static_cast<std::size_t>(zero - labels.begin()) % step;
}

/// The size of one attention map with its texts, in pixels. The tokens of the rows are at the left of the cells. The
/// tokens of the columns are above the cells and slanted, so that the last tokens may reach beyond the right edge of
/// the cells. A map with axes has its labels at the left of the cells and below the cells.
struct Extent {
  double left, above, width, height;

  explicit Extent(const AttentionMap& map)
      : left(std::ceil(widest(map.rows)) + 8 + (map.axes ? kAxisName : 0)),
        above(map.axes ? kPictureTitle + 12 : widest(map.columns) * kSin + kPictureFont + kPictureTitle + 12),
        width(std::max(cell_width(map) * static_cast<double>(map.columns.size()),
                       text_width(map.title(), kPictureTitle, true))),
        height(above + cell_height(map) * static_cast<double>(map.rows.size()) + (map.axes ? kBelow + kOwnScale : 0)) {
    if (map.axes) {
      width = std::ceil(width + left + widest(map.columns) / 2);
      return;
    }
    for (std::size_t c = 0; c < map.columns.size(); ++c)
      width = std::max(width,
                       kCell * (static_cast<double>(c) + 0.8) + text_width(shown(map.columns[c]), kPictureFont) * kCos);
    width += left;
  }
};

Layout arrange(std::span<const AttentionSection> sections) {
  Layout layout;
  float greatest = 0;
  double y = kPictureMargin;
  const auto put = [&](double x, double at, const std::string& text, double size) {
    layout.labels.push_back({{x, at}, text, {.size = size, .bold = true}});
    layout.width = std::max(layout.width, x + text_width(text, size, true));
  };
  for (const AttentionSection& section : sections) {
    if (!section.heading.empty()) {
      put(kPictureMargin, y + kPictureHeading, section.heading, kPictureHeading);
      y += kPictureHeading + 14;
    }
    double x = kPictureMargin, row_height = 0;
    const AttentionMap* before = nullptr;
    for (const AttentionMap& map : section.maps) {
      map.check();
      for (const float weight : map.weights) greatest = std::max(greatest, weight);
      const Extent extent(map);
      const bool next_row = before && ((!map.axes && (before->kind != map.kind || before->layer != map.layer)) ||
                                       x + extent.width > kWidestRow);
      if (next_row) {
        x = kPictureMargin;
        y += row_height + kGap;
        row_height = 0;
      }
      put(x + extent.left, y + kPictureTitle, map.title(), kPictureTitle);
      layout.maps.push_back({&map, {x + extent.left, y + extent.above}, fine_scale(map.weights)});
      x += extent.width + kGap;
      layout.width = std::max(layout.width, x - kGap);
      row_height = std::max(row_height, extent.height);
      before = &map;
    }
    y += row_height + kGap;
  }
  const bool own_scales = std::any_of(layout.maps.begin(), layout.maps.end(),
                                      [](const Placed& placed) { return placed.map->axes.has_value(); });
  if (!own_scales) layout.scale = ColorScale{0, scale_top(greatest)};
  layout.width = std::max(layout.width, 320.0) + kPictureMargin;
  layout.height = y + (own_scales ? 0 : 34);
  return layout;
}

std::string hint(const AttentionMap& map, std::size_t row, std::size_t column) {
  return visible_token(map.rows[row]) + " → " + visible_token(map.columns[column]) + ": " +
         number_text("%.3f", static_cast<double>(map.at(row, column)));
}

void draw_map(Canvas& canvas, const Placed& placed, const ColorScale& scale) {
  const AttentionMap& map = *placed.map;
  const auto along = [](std::size_t index) { return kCell * static_cast<double>(index); };
  for (std::size_t c = 0; c < map.columns.size(); ++c)
    canvas.text({placed.corner.x + along(c) + 0.7 * kCell, placed.corner.y - 6}, shown(map.columns[c]),
                {.size = kPictureFont, .rotate = kSlant});
  for (std::size_t r = 0; r < map.rows.size(); ++r) {
    const double y = placed.corner.y + along(r);
    canvas.text({placed.corner.x - 6, y + kCell / 2 + 0.36 * kPictureFont}, shown(map.rows[r]),
                {.size = kPictureFont, .anchor = Anchor::end});
    for (std::size_t c = 0; c < map.columns.size(); ++c)
      canvas.rectangle({placed.corner.x + along(c), y}, kCell - 0.5, kCell - 0.5, color_of(scale.place(map.at(r, c))),
                       hint(map, r, c));
  }
}

/// Draws an attention map whose queries and keys are numbers: the cells, ticks with labels, and the names of the axes.
void draw_numbers(Canvas& canvas, const Placed& placed) {
  constexpr double kTick = 4, kGapBesideLabels = 14;
  const AttentionMap& map = *placed.map;
  const double wide = cell_width(map), high = cell_height(map), x = placed.corner.x, y = placed.corner.y;
  const double width = wide * static_cast<double>(map.columns.size());
  const double height = high * static_cast<double>(map.rows.size());
  const auto middle = [](std::size_t index, double cell) { return cell * (static_cast<double>(index) + 0.5); };
  const auto tick = [&](Point from, Point to) {
    const std::array<Point, 2> line{from, to};
    canvas.line(line, {120, 120, 120}, 1);
  };
  for (std::size_t r = 0; r < map.rows.size(); ++r)
    for (std::size_t c = 0; c < map.columns.size(); ++c)
      canvas.rectangle({x + wide * static_cast<double>(c), y + high * static_cast<double>(r)}, wide, high,
                       color_of(placed.scale.place(map.at(r, c))), hint(map, r, c));
  const std::size_t down = label_step(kPictureFont + 6, high);
  for (std::size_t r = first_label(map.rows, down); r < map.rows.size(); r += down) {
    const double at = y + middle(r, high);
    tick({x - kTick, at}, {x, at});
    canvas.text({x - kTick - 3, at + 0.36 * kPictureFont}, shown(map.rows[r]),
                {.size = kPictureFont, .anchor = Anchor::end});
  }
  const std::size_t across = label_step(widest(map.columns) + kGapBesideLabels, wide);
  for (std::size_t c = first_label(map.columns, across); c < map.columns.size(); c += across) {
    const double at = x + middle(c, wide);
    tick({at, y + height}, {at, y + height + kTick});
    canvas.text({at, y + height + kTick + kPictureFont + 1}, shown(map.columns[c]),
                {.size = kPictureFont, .anchor = Anchor::middle});
  }
  canvas.text({x + width / 2, y + height + kBelow - 4}, map.axes->columns,
              {.size = kPictureFont, .anchor = Anchor::middle});
  canvas.text({x - std::ceil(widest(map.rows)) - kAxisName + 4, y + height / 2}, map.axes->rows,
              {.size = kPictureFont, .anchor = Anchor::middle, .rotate = -90});
  draw_color_scale(canvas, {x, y + height + kBelow + kOwnScale - 20}, map.axes->values, placed.scale, "%g");
}

void draw(Canvas& canvas, const Layout& layout) {
  for (const Label& label : layout.labels) canvas.text(label.at, label.text, label.style);
  for (const Placed& placed : layout.maps)
    if (placed.map->axes)
      draw_numbers(canvas, placed);
    else
      draw_map(canvas, placed, layout.scale.value_or(placed.scale));
  if (layout.scale)
    draw_color_scale(canvas, {kPictureMargin, layout.height - kPictureMargin - 12}, "weight", *layout.scale, "%.1f");
}

}  // namespace

std::string attention_svg(std::span<const AttentionSection> sections) {
  const Layout layout = arrange(sections);
  SvgCanvas canvas(layout.width, layout.height, "attention");
  draw(canvas, layout);
  return canvas.take();
}

std::string attention_png(std::span<const AttentionSection> sections) {
  const Layout layout = arrange(sections);
  PngCanvas canvas(layout.width, layout.height);
  draw(canvas, layout);
  return canvas.take();
}

}  // namespace heed
