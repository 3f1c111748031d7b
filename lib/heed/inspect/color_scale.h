#pragma once

#include <string>

#include "heed/inspect/canvas.h"
#include "heed/inspect/color_map.h"

namespace heed {

/// Draws a colour scale with the name of the values and the numbers at both ends. `corner` is the upper left corner of
/// the scale and its texts, and `format` is that of the numbers, as in printf(); `width` is that of the colours alone,
/// in pixels. `color` returns the colour for a place on the scale, 0 ... 1.
void draw_color_scale(Canvas& canvas, Point corner, const std::string& name, const ColorScale& scale,
                      const char* format, double width = 200, Rgb (*color)(float) = color_of);

}  // namespace heed
