#pragma once

#include <span>
#include <string>
#include <vector>

#include "heed/inspect/attention_map.h"

namespace heed {

/// The maps of one sentence, with a heading above them.
struct AttentionSection {
  std::string heading;
  std::vector<AttentionMap> maps;
};

/// Draws heat maps as an SVG picture, and returns the file's contents. The maps form a grid: one row for each kind and
/// layer, with the heads from left to right. All maps share one scale, from 0 to the greatest weight rounded up to a
/// tenth. A cell shows its two tokens and its weight when the pointer is over the cell.
std::string attention_svg(std::span<const AttentionSection> sections);
/// Draws heat maps as a PNG picture in the arrangement of attention_svg(), and returns the file's contents.
std::string attention_png(std::span<const AttentionSection> sections);

}  // namespace heed
