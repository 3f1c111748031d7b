#include "heed/inspect/terminal_plot.h"

#include <doctest/doctest.h>

#include <cmath>
#include <sstream>

#include "heed/base/utf8.h"
#include "heed/inspect/color_map.h"

using namespace heed;

namespace {

Plot small_plot() {
  Plot plot{.title = "A title", .x_label = "x", .left_label = "y", .right_label = "", .series = {}, .counts = false};
  PlotSeries up{.name = "up", .points = {{0, 0}, {10, 10}}},
      level{.name = "level", .points = {{0, 5}, {4, 5}, {5, NAN}, {6, 5}, {10, 5}}, .gaps = true};
  PlotSeries points{.name = "two points", .points = {{0, 10}, {10, 0}}, .line = false};
  plot.series = {points, up, level};
  return plot;
}

std::string without_escapes(std::string text) {
  for (std::size_t at; (at = text.find('\x1b')) != std::string::npos;) text.erase(at, text.find('m', at) + 1 - at);
  return text;
}

}  // namespace

TEST_CASE("a plot in ASCII: legend, axes with ticks, a mark for each curve, gaps") {
  CHECK(terminal_plot(small_plot(), {Shading::ascii, 32}) == R"(A title
. two points   * up   + level
y
10 +.                        **
   |                     ****
   |                 ****
 5 ++++++++++++  ***+++++++++++
   |          ***
   |      ****
   |  ****
 0 +**                        .
   ++------------+------------+
    0            5           10
                 x
)");
}

TEST_CASE("a plot in colours: Braille curves, dots for points") {
  const std::string picture = terminal_plot(small_plot(), {Shading::truecolor, 40});
  CHECK(picture.starts_with("\x1b[1mA title\x1b[0m\n• two points   \x1b[38;2;0;114;178m━━\x1b[0m up   "));
  CHECK(picture.find("\x1b[38;2;0;114;178m⡠\x1b[0m") != std::string::npos);
  const std::string palette = terminal_plot(small_plot(), {Shading::palette, 40});
  CHECK(palette.find("\x1b[38;5;" + std::to_string(palette_index(Rgb{0, 114, 178})) + "m━━\x1b[0m up") !=
        std::string::npos);
  CHECK(without_escapes(palette) == without_escapes(picture));
}

TEST_CASE("a plot fits the width, in every shading, also with wide texts and large numbers") {
  Plot plot = small_plot();
  plot.title = "A long title of several words, which takes more than one line";
  plot.x_label = plot.left_label = plot.title;
  for (int i = 0; i < 9; ++i)
    plot.series.push_back(
        {.name = "a curve with a long name " + std::to_string(i), .points = {{0, 1.6e9}, {10, 1e5 * i}}});
  for (const Shading shading : {Shading::ascii, Shading::blocks, Shading::palette, Shading::truecolor})
    for (const int width : {20, 33, 80, 200}) {
      std::istringstream lines(without_escapes(terminal_plot(plot, {shading, width})));
      for (std::string line; std::getline(lines, line);) {
        CAPTURE(line);
        CHECK(display_width(line) <= width);
      }
    }
}

TEST_CASE("a plot without points has axes") {
  const Plot none{.title = "t", .x_label = "x", .left_label = "", .right_label = "", .series = {}};
  CHECK(terminal_plot(none, {Shading::ascii, 40}).find("+--") != std::string::npos);
  Plot nan = none;
  nan.series = {{.name = "s", .points = {{0, NAN}}, .gaps = true}};
  CHECK(terminal_plot(nan, {Shading::truecolor, 40}).find("nan") == std::string::npos);
}
