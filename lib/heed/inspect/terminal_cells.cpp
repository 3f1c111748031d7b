#include "heed/inspect/terminal_cells.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <vector>

#include "heed/base/number_text.h"
#include "heed/base/utf8.h"

namespace heed {
namespace {

/// Returns the escape sequence that sets the background colour of a weight.
std::string background(float share, Shading shading) {
  return "\x1b[48;" +
         (shading == Shading::palette ? color_code(palette_index(share)) : color_code(color_of(share), shading)) + 'm';
}

}  // namespace

std::string caption_lines(std::string_view text, int width, Shading shading) {
  std::string out;
  for (const std::string& line : wrap_width(text, width, cut_mark(shading)))
    out += (has_colors(shading) ? "\x1b[1m" + line + "\x1b[0m" : line) + '\n';
  return out;
}

int row_label_width(std::span<const std::string> rows, int width, Shading shading) {
  int widest = 0;
  for (const std::string& row : rows)
    widest = std::max(widest, display_width(visible_token(row, shading == Shading::ascii)));
  return std::min(widest, std::max(4, width / 3));
}

std::string color_code(int index) {
  return "5;" + std::to_string(index);
}

std::string color_code(Rgb color, Shading shading) {
  if (shading == Shading::palette) return color_code(palette_index(color));
  return "2;" + std::to_string(color.red) + ';' + std::to_string(color.green) + ';' + std::to_string(color.blue);
}

std::string_view shade_character(float share, bool ascii) {
  constexpr std::array<std::string_view, 5> blocks{" ", "░", "▒", "▓", "█"};
  constexpr std::array<std::string_view, 10> letters{" ", ".", ":", "-", "=", "+", "*", "#", "%", "@"};
  const auto pick = [share](const auto& shades) {
    const auto steps = static_cast<float>(shades.size() - 1);
    const float level = share < 0.05F ? 0 : 1 + std::floor(share * steps);
    return shades[static_cast<std::size_t>(std::min(level, steps))];
  };
  return ascii ? pick(letters) : pick(blocks);
}

std::string heat_cells(std::span<const float> shares, Shading shading) {
  std::string out, last;
  for (const float share : shares) {
    if (!has_colors(shading)) {
      for (int i = 0; i < kHeatCellWidth; ++i) out += shade_character(share, shading == Shading::ascii);
      continue;
    }
    const std::string next = background(share, shading);
    if (next != last) out += next;
    out.append(kHeatCellWidth, ' ');
    last = next;
  }
  return has_colors(shading) && !shares.empty() ? out + "\x1b[0m" : out;
}

std::string terminal_color_scale(const std::string& name, const char* format, const ColorScale& scale, Shading shading,
                                 int width) {
  const bool colored = has_colors(shading);
  const std::string low = scale.low == 0 ? "0" : number_text(format, static_cast<double>(scale.low));
  const std::string high = number_text(format, static_cast<double>(scale.high));
  // The width, in terminal columns, of the texts at both ends of the colour scale: "0 " and " 0.8", with brackets when
  // the terminal shows no colours.
  const int ends = (colored ? 2 : 4) + display_width(low) + display_width(high);
  int steps = colored ? 16 : shading == Shading::ascii ? 10 : 5;
  const bool named = display_width(name) + 1 + ends + kHeatCellWidth * steps <= width;
  while (!named && steps > 3 && ends + kHeatCellWidth * steps > width) --steps;
  std::vector<float> shares;
  for (int i = 0; i < steps; ++i)
    shares.push_back(std::max(0.0F, static_cast<float>(i) - 0.5F) / static_cast<float>(steps - 1));
  return (named ? name + ' ' : "") + low + (colored ? " " : " [") + heat_cells(shares, shading) +
         (colored ? " " : "] ") + high + '\n';
}

}  // namespace heed
