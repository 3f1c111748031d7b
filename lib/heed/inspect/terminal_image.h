#pragma once

#include <span>
#include <string>
#include <vector>

#include "heed/inspect/image_attention.h"
#include "heed/inspect/terminal_heatmap.h"

namespace heed {

/// Draws the attention to the patches of an image as text for a terminal: the image and then the panels, as many side
/// by side as fit. Returns the text, which ends with a line end. In colours, a character is two pixels, one above the
/// other (U+2580 with two colours); in 24-bit colours, the colours of the weights lie over the image in grey, as in
/// image_attention_svg(), and in 256 colours, they stand alone. Without colours, a character shows the mean of its two
/// pixels: the brightness of the image, or the weight. The panels of a group share one colour scale, which is drawn
/// below them. In colours, the patch that is the query has a red frame, or, if it has less than 3 x 3 pixels, is red in
/// the image; white pixels are the borders of windows, if each patch has at least 2 x 2 pixels.
std::string terminal_image(const ImageSection& section, const HeatmapStyle& style);

/// Draws rows of pixels as text with half blocks, two rows of pixels on each line. `colors` has the colour of each
/// pixel as terminals write it in escape sequences, "2;RED;GREEN;BLUE" or "5;INDEX", and `width` pixels for each row.
/// Returns the lines. If the number of rows is odd, the lower halves of the last line keep the terminal's colour.
std::vector<std::string> half_blocks(std::span<const std::string> colors, int width);

}  // namespace heed
