#pragma once

#include <span>
#include <string>
#include <string_view>

#include "heed/base/terminal.h"
#include "heed/inspect/color_map.h"

namespace heed {

/// The number of terminal columns of a cell of a heat map.
constexpr int kHeatCellWidth = 2;

constexpr bool has_colors(Shading shading) {
  return shading == Shading::truecolor || shading == Shading::palette;
}

/// Returns the character that ends a text which was cut.
constexpr std::string_view cut_mark(Shading shading) {
  return shading == Shading::ascii ? "~" : "…";
}

/// Returns a caption as lines of at most `width` terminal columns, each with a line end; bold where there are colours.
std::string caption_lines(std::string_view text, int width, Shading shading);

/// Returns the width of the labels of an attention map's rows, in terminal columns: that of the widest token, but at
/// most a third of `width`, the width of the terminal.
int row_label_width(std::span<const std::string> rows, int width, Shading shading);

/// Returns what an escape sequence says about a colour behind its 38 (foreground) or 48 (background): "5;INDEX" for a
/// colour of the palette, and the nearest of them for Shading::palette, or "2;RED;GREEN;BLUE".
std::string color_code(int index);
std::string color_code(Rgb color, Shading shading);

/// Returns the character that shows a weight without colours: a blank for less than 5 % of the scale, and one of the
/// other, darker characters from 5 % on, in equal steps. `share` is the place of the weight on the scale, 0 ... 1.
std::string_view shade_character(float share, bool ascii);

/// Returns a row of cells of a heat map. `shares` has the place of each cell's weight on the scale.
std::string heat_cells(std::span<const float> shares, Shading shading);

/// Returns a colour scale as a line of text that has at most `width` columns, if possible. `name` says what the values
/// are, and `format` is that of the numbers at both ends, as in printf().
std::string terminal_color_scale(const std::string& name, const char* format, const ColorScale& scale, Shading shading,
                                 int width);

}  // namespace heed
