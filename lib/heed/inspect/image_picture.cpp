#include "heed/inspect/image_picture.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "heed/base/number_text.h"
#include "heed/base/terminal.h"
#include "heed/inspect/color_scale.h"
#include "heed/inspect/image_panels.h"
#include "heed/inspect/picture_sizes.h"
#include "heed/inspect/png_canvas.h"
#include "heed/inspect/svg_canvas.h"

namespace heed {
namespace {

constexpr double kPanelGap = 14, kSectionGap = 28;
// The room for the label above a panel, and for the title above a group of panels, in pixels.
constexpr double kLabelRoom = 18, kTitleRoom = 22;
// The size of the longer side of a panel, in pixels, is this or a little more, so that patches have whole pixels.
constexpr double kPanelSide = 144;
// The greatest width of the picture, in pixels. A panel that would not fit starts a new row.
constexpr double kWidestPicture = 1500;
// The greatest width of the title above a group of panels, in characters; the width of the colours of the colour scale
// beside it, and the room for the scale with its texts, in pixels.
constexpr int kLongestTitle = 100;
constexpr double kScaleColors = 100, kScaleWidth = 210;
// An image is enlarged to at least this many pixels, so that the pixels of a small image stay squares.
constexpr int kCrispSide = 320;

/// The images of a section as they are drawn.
struct Pictures {
  Image image, grey;
};

struct Text {
  Point at;
  std::string text;
  TextStyle style;
};

/// A panel, or the image itself, and its place in the picture.
struct PlacedPanel {
  Point corner;
  double width, height;
  std::size_t section;
  std::optional<ImagePanel> panel;        // absent: the image itself
  ColorScale scale = {};                  // of the panel
  std::optional<std::int32_t> mark = {};  // the patch with a frame around it
  const ImageGrid* grid = nullptr;        // of `mark`
};

struct PlacedScale {
  Point corner;
  ColorScale scale;
};

struct ImageLayout {
  std::vector<Text> texts;
  std::vector<PlacedPanel> panels;
  std::vector<PlacedScale> scales;
  std::vector<Pictures> pictures;
  double width = 360, height = 0;
};

double patch_side(const ImageGrid& grid) {
  return std::ceil(kPanelSide / std::max(grid.size.columns, grid.size.rows));
}

/// Returns the image with each pixel as a square of several pixels, at least kCrispSide pixels wide.
Image crisp(const Image& image) {
  const int factor = (kCrispSide + image.width - 1) / image.width;
  Image out = Image::black(image.width * factor, image.height * factor, image.channels);
  for (int y = 0; y < out.height; ++y)
    for (int x = 0; x < out.width; ++x)
      std::copy_n(image.pixel(x / factor, y / factor), image.channels, out.pixel(x, y));
  return out;
}

/// Returns the text, cut so that it takes at most `width` pixels.
std::string fitted(const std::string& text, double width) {
  for (int columns = 60; columns > 1; --columns) {
    const std::string cut = fit_width(visible_text(text), columns);
    if (text_width(cut, kPictureFont) <= width) return cut;
  }
  return fit_width(visible_text(text), 1);
}

/// Arranges the panels of images from top to bottom.
class Arranger {
 public:
  explicit Arranger(std::span<const ImageSection> sections) {
    for (std::size_t i = 0; i < sections.size(); ++i) arrange(sections[i], i);
    layout_.width += kPictureMargin;
    layout_.height = y_ - kSectionGap + kPictureMargin;
  }
  ImageLayout take() { return std::move(layout_); }

 private:
  void put(Point at, const std::string& text, const TextStyle& style) {
    layout_.texts.push_back({at, text, style});
    if (style.anchor == Anchor::start)
      layout_.width = std::max(layout_.width, at.x + text_width(text, style.size, style.bold));
  }

  void arrange(const ImageSection& section, std::size_t number) {
    const std::vector<PanelGroup> groups = image_panels(section.maps);
    layout_.pictures.push_back({});
    put({kPictureMargin, y_ + kPictureHeading}, section.heading, {.size = kPictureHeading, .bold = true});
    y_ += kPictureHeading + 14;
    if (section.picture.samples.empty()) {
      y_ += kSectionGap;
      return;
    }
    layout_.pictures.back() = {crisp(section.picture), crisp(grey_image(section.picture))};
    const double height = kPanelSide * section.picture.height / section.picture.width;
    PlacedPanel image{{kPictureMargin, y_ + kTitleRoom + kLabelRoom}, kPanelSide, height, number, {}};
    if (!groups.empty() && !groups.front().panels.empty()) {
      image.mark = groups.front().panels.front().query;
      image.grid = groups.front().panels.front().grid;
      image.width = patch_side(*image.grid) * image.grid->size.columns;
      image.height = patch_side(*image.grid) * image.grid->size.rows;
    }
    put_panel(image, "image");
    double bottom = image.corner.y + image.height + kPanelGap;
    const double left = kPictureMargin + image.width + 2 * kPanelGap;
    for (const PanelGroup& group : groups) arrange(group, number, left);
    y_ = std::max(bottom, y_) + kSectionGap - kPanelGap;
  }

  /// Places the panels of a group, from `left` on.
  void arrange(const PanelGroup& group, std::size_t number, double left) {
    const std::string title = fit_width(visible_text(group.title), kLongestTitle);
    put({left, y_ + kPictureTitle}, title, {.size = kPictureTitle, .bold = true});
    const Point scale{left + text_width(title, kPictureTitle, true) + 2 * kPanelGap, y_ + 2};
    layout_.scales.push_back({scale, group.scale});
    layout_.width = std::max(layout_.width, scale.x + kScaleWidth);
    y_ += kTitleRoom;
    double x = left, row_height = 0;
    for (const ImagePanel& panel : group.panels) {
      const double side = patch_side(*panel.grid);
      const double width = side * panel.grid->size.columns, height = side * panel.grid->size.rows;
      if (x > left && x + width > kWidestPicture) {
        x = left;
        y_ += row_height;
        row_height = 0;
      }
      put_panel({{x, y_ + kLabelRoom}, width, height, number, panel, group.scale, panel.query, panel.grid},
                panel.label);
      x += width + kPanelGap;
      row_height = std::max(row_height, kLabelRoom + height + kPanelGap);
    }
    y_ += row_height;
  }

  void put_panel(const PlacedPanel& placed, const std::string& label) {
    put({placed.corner.x + placed.width / 2, placed.corner.y - 6}, fitted(label, placed.width),
        {.size = kPictureFont, .anchor = Anchor::middle});
    layout_.width = std::max(layout_.width, placed.corner.x + placed.width);
    layout_.panels.push_back(placed);
  }

  ImageLayout layout_;
  double y_ = kPictureMargin;
};

void draw_frame(Canvas& canvas, Point corner, double width, double height, Rgb color, double line) {
  const double right = corner.x + width, bottom = corner.y + height;
  const std::array<Point, 5> points{
      {corner, {right, corner.y}, {right, bottom}, {corner.x, bottom}, {corner.x, corner.y - line / 2}}};
  canvas.line(points, color, line);
}

/// Draws the weights of a panel over the image, and the borders of windows.
void draw_weights(Canvas& canvas, const PlacedPanel& placed) {
  const ImageGrid& grid = *placed.panel->grid;
  const double wide = placed.width / grid.size.columns, high = placed.height / grid.size.rows;
  for (int r = 0; r < grid.size.rows; ++r)
    for (int c = 0; c < grid.size.columns; ++c) {
      const float weight = placed.panel->weights[static_cast<std::size_t>(r * grid.size.columns + c)];
      const std::string hint =
          std::to_string(c) + ',' + std::to_string(r) + number_text(": %.4f", static_cast<double>(weight));
      canvas.rectangle({placed.corner.x + c * wide, placed.corner.y + r * high}, wide, high,
                       color_of(placed.scale.place(weight)), hint, kOverlayOpacity);
    }
  for (const auto& [from, to] : window_borders(grid)) {
    const auto point = [&](const std::array<int, 2>& corner) {
      return Point{placed.corner.x + corner[0] * wide, placed.corner.y + corner[1] * high};
    };
    const std::array<Point, 2> border{point(from), point(to)};
    canvas.line(border, kBorderColor, 1.5);
  }
}

void draw_images(Canvas& canvas, const ImageLayout& layout) {
  for (const Text& text : layout.texts) canvas.text(text.at, text.text, text.style);
  for (const PlacedPanel& placed : layout.panels) {
    const Pictures& pictures = layout.pictures[placed.section];
    canvas.picture(placed.corner, placed.width, placed.height, placed.panel ? pictures.grey : pictures.image);
    if (placed.panel) draw_weights(canvas, placed);
    draw_frame(canvas, placed.corner, placed.width, placed.height, {120, 120, 120}, 0.75);
    if (!placed.mark) continue;
    const int columns = placed.grid->size.columns;
    const double wide = placed.width / columns, high = placed.height / placed.grid->size.rows;
    const Point corner{placed.corner.x + *placed.mark % columns * wide,
                       placed.corner.y + *placed.mark / columns * high};
    draw_frame(canvas, corner, wide, high, {255, 255, 255}, 4);
    draw_frame(canvas, corner, wide, high, kQueryColor, 2);
  }
  for (const auto& [corner, scale] : layout.scales)
    draw_color_scale(canvas, corner, "weight", scale, "%g", kScaleColors,
                     [](float share) { return overlay_color(share, kMiddleGrey); });
}

}  // namespace

std::string image_attention_svg(std::span<const ImageSection> sections) {
  const ImageLayout layout = Arranger(sections).take();
  SvgCanvas canvas(layout.width, layout.height, "attention");
  draw_images(canvas, layout);
  return canvas.take();
}

std::string image_attention_png(std::span<const ImageSection> sections) {
  const ImageLayout layout = Arranger(sections).take();
  PngCanvas canvas(layout.width, layout.height);
  draw_images(canvas, layout);
  return canvas.take();
}

}  // namespace heed
