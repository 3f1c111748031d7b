#pragma once

#include <span>
#include <string>
#include <vector>

#include "heed/inspect/attention_map.h"

namespace heed {

/// The attention maps of one sentence, with a heading that is drawn above them.
struct AttentionSection {
  std::string heading;
  std::vector<AttentionMap> maps;
};

/// Draws attention maps as heat maps in an SVG picture, and returns the contents of the SVG file. The maps form a grid:
/// one row for each kind of attention and layer, with the heads from left to right. All maps share one colour scale,
/// from 0 to the greatest weight rounded up to a tenth; maps with axes have one scale each, below the map. When the
/// pointer is over a cell, the picture shows the cell's two tokens and weight.
std::string attention_svg(std::span<const AttentionSection> sections);
/// Draws attention maps as heat maps in a PNG picture, in the same arrangement as attention_svg(), and returns the
/// contents of the PNG file.
std::string attention_png(std::span<const AttentionSection> sections);

}  // namespace heed
