#pragma once

#include <span>
#include <string>

#include "heed/base/terminal.h"
#include "heed/inspect/attention_map.h"

namespace heed {

/// The look of a heat map on a terminal.
struct HeatmapStyle {
  Shading shading = Shading::truecolor;
  /// The width in terminal columns; a wider map is cut into blocks of columns.
  int width = 80;
};

/// Draws the maps of one sentence for a terminal, and returns the text, which ends with a line end (an empty text for
/// no maps). The rows' tokens stand at the left and the columns' tokens above; a cell is two terminal columns wide. The
/// heads of one layer stand side by side, as many as fit. All maps share one scale, from 0 to the greatest weight
/// rounded up to a tenth; the last line shows the scale.
std::string terminal_heatmap(std::span<const AttentionMap> maps, const HeatmapStyle& style);

}  // namespace heed
