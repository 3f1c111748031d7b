#include "heed/inspect/terminal_image.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "heed/base/utf8.h"
#include "heed/image/resize.h"
#include "heed/inspect/image_panels.h"
#include "heed/inspect/terminal_cells.h"

namespace heed {
namespace {

constexpr int kImageGap = 2;
// Panels are at least this wide, in terminal columns, unless the terminal is narrower, and at most so wide unless the
// image has more patches.
constexpr int kNarrowestPanel = 16, kWidestPanel = 32;

/// The size of a panel in pixels, which are half a character high.
struct PanelSize {
  int width, height;
};

/// Returns the size of the panels for a grid. Each patch has the same number of pixels, if the terminal is wide enough:
/// the most with which `panels` panels are side by side, within limits.
PanelSize panel_size(const ImageGrid& grid, std::size_t panels, int width) {
  const int columns = grid.size.columns;
  const auto count = static_cast<int>(panels);
  const int room = (width + kImageGap) / count - kImageGap;
  const int least = (kNarrowestPanel + columns - 1) / columns, most = std::max(1, kWidestPanel / columns);
  int side = std::max(1, std::clamp(room / columns, std::min(least, most), most));
  side = std::max(1, std::min(side, width / columns));
  const int wide = std::min(width, side * columns);
  return {wide, std::max(1, wide * grid.size.rows / columns)};
}

/// The pixels or patches first ... end - 1 of a side of a panel.
struct Part {
  int first, end;
  int size() const { return end - first; }
};

/// Divides `count` pixels or patches of a side into `parts` parts, and returns part number `part`. It has at least one,
/// which it shares with its neighbours if there are more parts than pixels or patches.
Part part_of(int count, int part, int parts) {
  const int first = part * count / parts;
  return {first, std::max(first + 1, (part + 1) * count / parts)};
}

/// Returns the mean weight of the patches under each pixel of a panel.
std::vector<float> pixel_weights(const ImagePanel& panel, PanelSize size) {
  const int rows = panel.grid->size.rows, columns = panel.grid->size.columns;
  std::vector<float> out;
  for (int y = 0; y < size.height; ++y)
    for (int x = 0; x < size.width; ++x) {
      const auto [top, bottom] = part_of(rows, y, size.height);
      const auto [left, right] = part_of(columns, x, size.width);
      float sum = 0;
      for (int r = top; r < bottom; ++r)
        for (int c = left; c < right; ++c) sum += panel.weights[static_cast<std::size_t>(r * columns + c)];
      out.push_back(sum / static_cast<float>((bottom - top) * (right - left)));
    }
  return out;
}

/// What is drawn over a pixel: nothing, the border of a window, or the frame of the query.
enum class Mark : std::uint8_t { none, border, query };

/// The marks on the pixels of a panel.
class Marks {
 public:
  explicit Marks(PanelSize size) : size_(size), marks_(static_cast<std::size_t>(size.width * size.height)) {}

  Mark at(std::size_t pixel) const { return marks_[pixel]; }

  /// Marks the borders of windows: the first pixels on their right or below them, where a patch has at least 2 x 2
  /// pixels.
  void add_borders(const ImageGrid& grid) {
    if (size_.width < 2 * grid.size.columns || size_.height < 2 * grid.size.rows) return;
    for (const auto& [from, to] : window_borders(grid)) {
      const auto place = [&](const std::array<int, 2>& corner) {
        return std::array{corner[0] * size_.width / grid.size.columns, corner[1] * size_.height / grid.size.rows};
      };
      const auto [x, y] = place(from);
      const auto [right, bottom] = place(to);
      fill({x, std::max(right, x + 1)}, {y, std::max(bottom, y + 1)}, Mark::border);
    }
  }

  /// Marks the query, a patch: its outermost pixels. A patch of less than 3 x 3 pixels has no others: all its pixels
  /// are marked if `small` is true, and none otherwise.
  void add_query(const ImageGrid& grid, std::int32_t patch, bool small) {
    const int columns = grid.size.columns;
    const Part x = part_of(size_.width, patch % columns, columns);
    const Part y = part_of(size_.height, patch / columns, grid.size.rows);
    if (x.size() < 3 || y.size() < 3) {
      if (small) fill(x, y, Mark::query);
      return;
    }
    fill(x, {y.first, y.first + 1}, Mark::query);
    fill(x, {y.end - 1, y.end}, Mark::query);
    fill({x.first, x.first + 1}, y, Mark::query);
    fill({x.end - 1, x.end}, y, Mark::query);
  }

 private:
  void fill(Part x, Part y, Mark mark) {
    for (int row = y.first; row < std::min(y.end, size_.height); ++row)
      for (int column = x.first; column < std::min(x.end, size_.width); ++column)
        marks_[static_cast<std::size_t>(row * size_.width + column)] = mark;
  }

  PanelSize size_;
  std::vector<Mark> marks_;
};

/// Returns the lines of a panel without colours. `shares` has a number in 0 ... 1 for each pixel.
std::vector<std::string> shaded(std::span<const float> shares, int width, bool ascii) {
  std::vector<std::string> out;
  const auto columns = static_cast<std::size_t>(width);
  for (std::size_t top = 0; top < shares.size(); top += 2 * columns) {
    std::string& line = out.emplace_back();
    for (std::size_t x = top; x < top + columns; ++x) {
      const float below = x + columns < shares.size() ? shares[x + columns] : shares[x];
      line += shade_character((shares[x] + below) / 2, ascii);
    }
  }
  return out;
}

class ImagePainter {
 public:
  ImagePainter(const ImageSection& section, const HeatmapStyle& style) : section_(section), style_(style) {}

  std::string paint() {
    const std::vector<PanelGroup> groups = image_panels(section_.maps);
    std::size_t most = 0;
    for (const PanelGroup& group : groups) most = std::max(most, group.panels.size());
    bool image_shown = false;
    for (const PanelGroup& group : groups) {
      if (image_shown) out_ += '\n';
      out_ += caption_lines(visible_text(group.title, ascii()), style_.width, style_.shading);
      paint(group, most + 1, !image_shown);
      out_ += terminal_color_scale("weight", "%g", group.scale, style_.shading, style_.width);
      image_shown = true;
    }
    return out_;
  }

 private:
  /// A panel that is drawn: its label and its lines.
  struct Drawn {
    std::string label;
    std::vector<std::string> lines;
  };

  bool ascii() const { return style_.shading == Shading::ascii; }

  /// Adds the panels of a group, and the image before them if `image` is true. The panels have the size with which
  /// `beside` of them are side by side, within limits.
  void paint(const PanelGroup& group, std::size_t beside, bool image) {
    if (group.panels.empty()) return;
    const PanelSize size = panel_size(*group.panels.front().grid, beside, style_.width);
    const Image picture = resize(section_.picture, size.width, size.height);
    std::vector<Drawn> drawn;
    if (image) drawn.push_back({"image", image_lines(picture, group.panels.front())});
    const Image grey = grey_image(picture);
    for (const ImagePanel& panel : group.panels) drawn.push_back({panel.label, panel_lines(panel, group.scale, grey)});
    const auto each = static_cast<std::size_t>(std::max(1, (style_.width + kImageGap) / (size.width + kImageGap)));
    for (std::size_t first = 0; first < drawn.size(); first += each)
      add_strip(std::span(drawn).subspan(first, std::min(each, drawn.size() - first)), size.width);
  }

  void add_strip(std::span<const Drawn> strip, int width) {
    const auto add = [&](const auto& part_of) {
      std::string line;
      for (const Drawn& each : strip) {
        const auto& [text, columns] = part_of(each);
        line += text + std::string(static_cast<std::size_t>(std::max(0, width - columns) + kImageGap), ' ');
      }
      while (line.ends_with(' ')) line.pop_back();
      out_ += line + '\n';
    };
    add([&](const Drawn& each) {
      const std::string label = fit_width(visible_text(each.label, ascii()), width, cut_mark(style_.shading));
      return std::pair(label, display_width(label));
    });
    for (std::size_t i = 0; i < strip.front().lines.size(); ++i)
      add([&](const Drawn& each) { return std::pair(each.lines[i], width); });
    out_ += '\n';
  }

  /// Returns the lines of the image. In colours, the query of `panel` is marked.
  std::vector<std::string> image_lines(const Image& picture, const ImagePanel& panel) const {
    if (!has_colors(style_.shading)) {
      std::vector<float> shares;
      for (const std::uint8_t sample : grey_image(picture).samples) shares.push_back(static_cast<float>(sample) / 255);
      return shaded(shares, picture.width, ascii());
    }
    Marks marks({picture.width, picture.height});
    if (panel.query) marks.add_query(*panel.grid, *panel.query, true);
    std::vector<std::string> colors;
    for (int y = 0; y < picture.height; ++y)
      for (int x = 0; x < picture.width; ++x) {
        const std::uint8_t* const p = picture.pixel(x, y);
        Rgb color = picture.channels == 3 ? Rgb{p[0], p[1], p[2]} : Rgb{p[0], p[0], p[0]};
        if (marks.at(colors.size()) == Mark::query) color = kQueryColor;
        colors.push_back(code(color));
      }
    return half_blocks(colors, picture.width);
  }

  /// Returns the lines of a panel. `grey` is the image in the size of the panel.
  std::vector<std::string> panel_lines(const ImagePanel& panel, const ColorScale& scale, const Image& grey) const {
    const PanelSize size{grey.width, grey.height};
    std::vector<float> shares = pixel_weights(panel, size);
    for (float& weight : shares) weight = scale.place(weight);
    if (!has_colors(style_.shading)) return shaded(shares, size.width, ascii());
    Marks marks(size);
    marks.add_borders(*panel.grid);
    if (panel.query) marks.add_query(*panel.grid, *panel.query, false);
    std::vector<std::string> colors;
    for (std::size_t i = 0; i < shares.size(); ++i)
      colors.push_back(marks.at(i) == Mark::query           ? code(kQueryColor)
                       : marks.at(i) == Mark::border        ? code(kBorderColor)
                       : style_.shading == Shading::palette ? color_code(palette_index(shares[i]))
                                                            : code(overlay_color(shares[i], grey.samples[i])));
    return half_blocks(colors, size.width);
  }

  std::string code(Rgb color) const { return color_code(color, style_.shading); }

  const ImageSection& section_;
  const HeatmapStyle& style_;
  std::string out_;
};

}  // namespace

std::vector<std::string> half_blocks(std::span<const std::string> colors, int width) {
  std::vector<std::string> out;
  const auto columns = static_cast<std::size_t>(width);
  for (std::size_t top = 0; top < colors.size(); top += 2 * columns) {
    std::string& line = out.emplace_back();
    std::string last;
    for (std::size_t x = top; x < top + columns; ++x) {
      const std::string below = x + columns < colors.size() ? "48;" + colors[x + columns] : "49";
      const std::string next = "\x1b[38;" + colors[x] + ';' + below + 'm';
      if (next != last) line += next;
      line += "▀";
      last = next;
    }
    line += "\x1b[0m";
  }
  return out;
}

std::string terminal_image(const ImageSection& section, const HeatmapStyle& style) {
  return ImagePainter(section, style).paint();
}

}  // namespace heed
