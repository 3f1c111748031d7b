#include "heed/inspect/attention_picture.h"

#include <algorithm>
#include <cstdio>

#include "heed/base/terminal.h"
#include "heed/inspect/png_canvas.h"
#include "heed/inspect/svg_canvas.h"

namespace heed {
namespace {

constexpr double kMargin = 20, kCell = 20, kFont = 12, kHeading = 16, kTitle = 13, kGap = 28;
// The greatest width of a row of attention maps, in pixels. A map that would make the row wider starts a new row.
constexpr double kWidest = 1800;
// A token that takes more columns than this in a fixed-width font is cut.
constexpr int kLongestToken = 24;
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
  Point corner;  // the upper left corner of the map's cells
};

/// The positions of all texts and maps of a picture, and the picture's size. They are computed before anything is
/// drawn, since a canvas must know its size when it is made.
struct Layout {
  std::vector<Label> labels;
  std::vector<Placed> maps;
  double width = 0, height = 0;
  float top = 0;
};

std::string shown(const std::string& token) {
  return fit_width(visible_token(token), kLongestToken);
}

double widest(const std::vector<std::string>& tokens) {
  double width = 0;
  for (const std::string& token : tokens) width = std::max(width, text_width(shown(token), kFont));
  return width;
}

/// The size of one attention map with its texts, in pixels. The tokens of the rows are at the left of the cells. The
/// tokens of the columns are above the cells and slanted, so that the last tokens may reach beyond the right edge of
/// the cells.
struct Extent {
  double left, above, width, height;

  explicit Extent(const AttentionMap& map)
      : left(widest(map.rows) + 8),
        above(widest(map.columns) * kSin + kFont + kTitle + 12),
        width(std::max(kCell * static_cast<double>(map.columns.size()), text_width(map.title(), kTitle, true))),
        height(above + kCell * static_cast<double>(map.rows.size())) {
    for (std::size_t c = 0; c < map.columns.size(); ++c)
      width = std::max(width, kCell * (static_cast<double>(c) + 0.8) + text_width(shown(map.columns[c]), kFont) * kCos);
    width += left;
  }
};

Layout arrange(std::span<const AttentionSection> sections) {
  Layout layout;
  float greatest = 0;
  double y = kMargin;
  const auto put = [&](double x, double at, const std::string& text, double size) {
    layout.labels.push_back({{x, at}, text, {.size = size, .bold = true}});
    layout.width = std::max(layout.width, x + text_width(text, size, true));
  };
  for (const AttentionSection& section : sections) {
    if (!section.heading.empty()) {
      put(kMargin, y + kHeading, section.heading, kHeading);
      y += kHeading + 14;
    }
    double x = kMargin, row_height = 0;
    const AttentionMap* before = nullptr;
    for (const AttentionMap& map : section.maps) {
      map.check();
      for (const float weight : map.weights) greatest = std::max(greatest, weight);
      const Extent extent(map);
      const bool next_row =
          before && (before->kind != map.kind || before->layer != map.layer || x + extent.width > kWidest);
      if (next_row) {
        x = kMargin;
        y += row_height + kGap;
        row_height = 0;
      }
      put(x + extent.left, y + kTitle, map.title(), kTitle);
      layout.maps.push_back({&map, {x + extent.left, y + extent.above}});
      x += extent.width + kGap;
      layout.width = std::max(layout.width, x - kGap);
      row_height = std::max(row_height, extent.height);
      before = &map;
    }
    y += row_height + kGap;
  }
  layout.top = scale_top(greatest);
  layout.width = std::max(layout.width, 320.0) + kMargin;
  layout.height = y + 34;
  return layout;
}

std::string hint(const AttentionMap& map, std::size_t row, std::size_t column) {
  char weight[16];
  std::snprintf(weight, sizeof weight, "%.3f", static_cast<double>(map.at(row, column)));
  return visible_token(map.rows[row]) + " → " + visible_token(map.columns[column]) + ": " + weight;
}

void draw_map(Canvas& canvas, const Placed& placed, float top) {
  const AttentionMap& map = *placed.map;
  const auto along = [](std::size_t index) { return kCell * static_cast<double>(index); };
  for (std::size_t c = 0; c < map.columns.size(); ++c)
    canvas.text({placed.corner.x + along(c) + 0.7 * kCell, placed.corner.y - 6}, shown(map.columns[c]),
                {.size = kFont, .rotate = kSlant});
  for (std::size_t r = 0; r < map.rows.size(); ++r) {
    const double y = placed.corner.y + along(r);
    canvas.text({placed.corner.x - 6, y + kCell / 2 + 0.36 * kFont}, shown(map.rows[r]),
                {.size = kFont, .anchor = Anchor::end});
    for (std::size_t c = 0; c < map.columns.size(); ++c)
      canvas.rectangle({placed.corner.x + along(c), y}, kCell - 0.5, kCell - 0.5, color_of(map.at(r, c) / top),
                       hint(map, r, c));
  }
}

void draw_scale(Canvas& canvas, const Layout& layout) {
  constexpr int kSteps = 100;
  constexpr double kStep = 2, kHeight = 12;
  const double y = layout.height - kMargin - kHeight, x = kMargin + 60;
  canvas.text({kMargin, y + 10}, "weight", {.size = kFont});
  canvas.text({x - 4, y + 10}, "0", {.size = kFont, .anchor = Anchor::end});
  // The colour scale is a row of small rectangles, which overlap a little so that no gaps are visible between them.
  for (int i = 0; i < kSteps; ++i)
    canvas.rectangle({x + kStep * i, y}, i + 1 < kSteps ? kStep + 0.5 : kStep, kHeight,
                     color_of(static_cast<float>(i) / (kSteps - 1)));
  char top[16];
  std::snprintf(top, sizeof top, "%.1f", static_cast<double>(layout.top));
  canvas.text({x + kStep * kSteps + 6, y + 10}, top, {.size = kFont});
}

void draw(Canvas& canvas, const Layout& layout) {
  for (const Label& label : layout.labels) canvas.text(label.at, label.text, label.style);
  for (const Placed& map : layout.maps) draw_map(canvas, map, layout.top);
  draw_scale(canvas, layout);
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
