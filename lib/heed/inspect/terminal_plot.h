#pragma once

#include <string>

#include "heed/base/terminal.h"
#include "heed/inspect/plot.h"

namespace heed {

/// The way in which a plot is drawn on a terminal.
struct TerminalPlotStyle {
  Shading shading = Shading::truecolor;
  int width = 80;  ///< width of the terminal in columns, at least 20
};

/// Draws a plot for a terminal, and returns the text, which ends with a line end: title, legend, curves over both axes,
/// and the labels of the axes. With colours, a curve is drawn with Braille characters, each of which has 2 x 4 dots;
/// without colours, each curve has a character of its own. All curves belong to the left y axis.
std::string terminal_plot(const Plot& plot, const TerminalPlotStyle& style);

}  // namespace heed
