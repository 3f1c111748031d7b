#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "heed/inspect/color_map.h"
#include "heed/inspect/image_attention.h"

namespace heed {

/// A small picture: the image with the weights of its patches as colours over it, and a label.
struct ImagePanel {
  std::string label;
  const ImageGrid* grid;
  std::span<const float> weights;  ///< [patches], in reading order
  std::optional<std::int32_t> query = {};
};

/// Panels side by side, with a title and a common colour scale: the heads of a layer, or the words of a sentence.
struct PanelGroup {
  std::string title;
  std::vector<ImagePanel> panels;
  ColorScale scale;
};

/// Divides the maps of an image into panels. Maps of one row each, which belong to one layer, are one group with a
/// panel for each head; a map of several rows is a group with a panel for each row. The panels refer to `maps`.
std::vector<PanelGroup> image_panels(std::span<const PatchMap> maps);

/// Returns the weights of a panel in percent as a map with the columns and rows of the grid, for a table.
AttentionMap percent_map(const PanelGroup& group, const ImagePanel& panel);

/// A line between two corners of patches, (column, row), in a grid.
using GridLine = std::pair<std::array<int, 2>, std::array<int, 2>>;
/// Returns the lines between neighbouring patches that belong to different windows.
std::vector<GridLine> window_borders(const ImageGrid& grid);

/// The part of a panel's colour that is the colour of the weight; the rest is the grey image below.
constexpr double kOverlayOpacity = 0.65;
/// The grey over which a colour scale shows the colours of weights: the middle of what grey_image() returns.
constexpr std::uint8_t kMiddleGrey = 128;

/// The colours of the frame around the patch that is the query, and of the borders of windows.
constexpr Rgb kQueryColor{220, 30, 60}, kBorderColor{255, 255, 255};

/// Returns the colour of a weight whose place on the scale is `share`, laid over a grey pixel.
Rgb overlay_color(float share, std::uint8_t grey);
/// Returns the image in grey, with one channel. Its contrast is low, so that the colours of weights over bright and
/// dark parts of the image are alike.
Image grey_image(const Image& image);

}  // namespace heed
