#pragma once

#include <span>
#include <string>
#include <vector>

#include "heed/inspect/attention_map.h"

namespace heed {

/// The maps of one sentence, under its heading.
struct AttentionSection {
  std::string heading;
  std::vector<AttentionMap> maps;
};

/// Heat maps as a picture: a grid, one row for each kind and layer, its heads from left to right; all on one scale,
/// from 0 to the greatest weight rounded up to a tenth. In the SVG a cell tells its two tokens and its weight under the
/// pointer.
std::string attention_svg(std::span<const AttentionSection> sections);
std::string attention_png(std::span<const AttentionSection> sections);

}  // namespace heed
