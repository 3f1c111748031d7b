#include "heed/inspect/image_panels.h"

#include <cmath>

namespace heed {
namespace {

/// Returns the title of the heads of one layer: "encoder attention of the class token, layer 2".
std::string group_title(const PatchMap& patches) {
  const AttentionMap& map = patches.map;
  const std::string& row = map.rows.front();
  // The queries of cross attention are words, which may look like the labels of other queries.
  const std::string query = map.kind == "cross"       ? "\"" + row + "\""
                            : patches.query           ? "patch " + row
                            : row == kClassTokenLabel ? "the class token"
                                                      : "all patches on average";
  return (map.reduction == kRolloutReduction ? "attention rollout of " : map.kind + " attention of ") + query + ", " +
         map.layer_title();
}

/// Returns the panel of one row of a map.
ImagePanel panel_of(const PatchMap& patches, std::size_t row, const std::string& label) {
  const std::size_t columns = patches.map.columns.size();
  const std::size_t first = row * columns + (patches.grid.has_class_token() ? 1 : 0);
  const auto count = static_cast<std::size_t>(patches.grid.size.tokens());
  return {label, &patches.grid, std::span(patches.map.weights).subspan(first, count), patches.query};
}

}  // namespace

std::vector<PanelGroup> image_panels(std::span<const PatchMap> maps) {
  std::vector<PanelGroup> out;
  const auto begin = [&out](const std::string& title) { out.push_back({.title = title, .panels = {}, .scale = {}}); };
  const PatchMap* before = nullptr;
  for (const PatchMap& patches : maps) {
    const AttentionMap& map = patches.map;
    map.check();
    if (map.rows.size() != 1) {
      begin(map.title());
      for (std::size_t r = 0; r < map.rows.size(); ++r) out.back().panels.push_back(panel_of(patches, r, map.rows[r]));
      before = nullptr;
      continue;
    }
    if (!before || before->map.kind != map.kind || before->map.layer != map.layer) begin(group_title(patches));
    out.back().panels.push_back(panel_of(patches, 0, head_title(map.head, map.reduction)));
    before = &patches;
  }
  for (PanelGroup& group : out) {
    std::vector<float> weights;
    for (const ImagePanel& panel : group.panels)
      weights.insert(weights.end(), panel.weights.begin(), panel.weights.end());
    group.scale = fine_scale(weights);
  }
  return out;
}

AttentionMap percent_map(const PanelGroup& group, const ImagePanel& panel) {
  AttentionMap out{.weights = std::vector<float>(panel.weights.begin(), panel.weights.end())};
  for (float& weight : out.weights) weight *= 100;
  for (int r = 0; r < panel.grid->size.rows; ++r) out.rows.push_back(std::to_string(r));
  for (int c = 0; c < panel.grid->size.columns; ++c) out.columns.push_back(std::to_string(c));
  out.axes =
      NumberAxes{.caption = group.title + ": " + panel.label + ", in percent", .rows = "row", .columns = "column"};
  return out;
}

std::vector<GridLine> window_borders(const ImageGrid& grid) {
  std::vector<GridLine> out;
  if (!grid.has_windows()) return out;
  const std::vector<std::int32_t> windows = grid.windows();
  const int rows = grid.size.rows, columns = grid.size.columns;
  const auto window = [&](int row, int column) { return windows[static_cast<std::size_t>(row * columns + column)]; };
  // Adds the border from `from` to `to`, or makes the border before longer, if it ends at `from`.
  const auto add = [&](std::array<int, 2> from, std::array<int, 2> to, std::size_t first) {
    if (out.size() > first && out.back().second == from)
      out.back().second = to;
    else
      out.emplace_back(from, to);
  };
  for (int c = 1; c < columns; ++c) {
    const std::size_t first = out.size();
    for (int r = 0; r < rows; ++r)
      if (window(r, c - 1) != window(r, c)) add({c, r}, {c, r + 1}, first);
  }
  for (int r = 1; r < rows; ++r) {
    const std::size_t first = out.size();
    for (int c = 0; c < columns; ++c)
      if (window(r - 1, c) != window(r, c)) add({c, r}, {c + 1, r}, first);
  }
  return out;
}

Rgb overlay_color(float share, std::uint8_t grey) {
  const Rgb color = color_of(share);
  const auto mix = [grey](std::uint8_t part) {
    return static_cast<std::uint8_t>(std::lround(kOverlayOpacity * part + (1 - kOverlayOpacity) * grey));
  };
  return {mix(color.red), mix(color.green), mix(color.blue)};
}

Image grey_image(const Image& image) {
  constexpr int kContrast = 70;  // percent
  Image out = Image::black(image.width, image.height, 1);
  for (int y = 0; y < image.height; ++y)
    for (int x = 0; x < image.width; ++x) {
      const std::uint8_t* const pixel = image.pixel(x, y);
      const int grey = image.channels == 3 ? grey_of(pixel[0], pixel[1], pixel[2]) : *pixel;
      *out.pixel(x, y) = static_cast<std::uint8_t>(kMiddleGrey + (grey - kMiddleGrey) * kContrast / 100);
    }
  return out;
}

}  // namespace heed
