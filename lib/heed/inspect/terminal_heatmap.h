#pragma once

#include <span>
#include <string>

#include "heed/base/terminal.h"
#include "heed/inspect/attention_map.h"

namespace heed {

/// The way in which a heat map is drawn on a terminal.
struct HeatmapStyle {
  Shading shading = Shading::truecolor;
  /// The width of the terminal in columns. A map that is wider is divided into parts, which are drawn one below the
  /// other.
  int width = 80;
};

/// Draws the attention maps of one sentence as heat maps for a terminal. Returns the text, which ends with a line end,
/// or an empty text for no maps. The tokens of the rows are at the left and the tokens of the columns above; a cell is
/// two terminal columns wide. The heads of one layer are side by side, as many as fit. All maps share one scale, from 0
/// to the greatest weight rounded up to a tenth; the last line shows the scale. Maps with axes have one scale each,
/// below the map.
std::string terminal_heatmap(std::span<const AttentionMap> maps, const HeatmapStyle& style);

}  // namespace heed
