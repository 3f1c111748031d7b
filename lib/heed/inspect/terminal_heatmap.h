#pragma once

#include <span>
#include <string>

#include "heed/base/terminal.h"
#include "heed/inspect/attention_map.h"

namespace heed {

struct HeatmapStyle {
  Shading shading = Shading::truecolor;
  int width = 80;  ///< columns to fit into; wider maps are cut into blocks of columns
};

/// The maps of one sentence for a terminal: rows labelled at the left, columns above; a cell is two columns wide. Heads
/// of one layer stand side by side as far as they fit. All maps share one scale, from 0 to the greatest weight rounded
/// up to a tenth, which the last line shows. Ends with a line end; empty for no maps.
std::string terminal_heatmap(std::span<const AttentionMap> maps, const HeatmapStyle& style);

}  // namespace heed
