#pragma once

#include <span>
#include <string>

#include "heed/inspect/image_attention.h"

namespace heed {

/// Draws the attention to the patches of images in an SVG picture, and returns the contents of the SVG file. Each
/// section has the image at the left; at its right, each layer is a row with a panel for each head, or each map with
/// several queries is a group with a panel for each query. A panel shows the image in grey, with the weights of its
/// patches as colours over it, the borders of windows as white lines, and a frame around the patch that is the query.
/// The panels of a row share one colour scale, beside its title. When the pointer is over a patch, the picture shows
/// its column, row and weight.
std::string image_attention_svg(std::span<const ImageSection> sections);
/// Draws the same picture as image_attention_svg() as PNG, and returns the contents of the PNG file.
std::string image_attention_png(std::span<const ImageSection> sections);

}  // namespace heed
