#include "heed/inspect/canvas.h"

#include <algorithm>
#include <array>

#include "heed/base/utf8.h"

namespace heed {
namespace {

/// The widths of the characters from space to ~ in the font DejaVu Sans, in hundredths of the font's size. The other
/// fonts that a picture may be shown in have characters of the same width or narrower ones.
constexpr std::array<unsigned char, 95> kRegular{
    32, 41, 46, 84, 64, 96, 78, 28, 40,  40, 50, 84, 32, 37, 32, 34, 64, 64, 64, 64, 64, 64, 64, 64,
    64, 64, 34, 34, 84, 84, 84, 54, 100, 69, 69, 70, 78, 64, 58, 78, 76, 30, 30, 66, 56, 87, 75, 79,
    61, 79, 70, 64, 62, 74, 69, 99, 69,  62, 69, 40, 34, 40, 84, 50, 50, 62, 64, 55, 64, 62, 36, 64,
    64, 28, 28, 58, 28, 98, 64, 62, 64,  64, 42, 53, 40, 64, 60, 82, 60, 60, 53, 64, 34, 64, 84};
constexpr std::array<unsigned char, 95> kBold{
    35, 46, 53, 84, 70, 101, 88, 31,  46,  46, 53, 84, 38, 42, 38, 37, 70, 70, 70, 70, 70, 70,  70, 70,
    70, 70, 40, 40, 84, 84,  84, 59,  100, 78, 77, 74, 84, 69, 69, 83, 84, 38, 38, 78, 64, 100, 84, 86,
    74, 86, 78, 73, 69, 82,  78, 111, 78,  73, 73, 46, 37, 46, 84, 50, 50, 68, 72, 60, 72, 68,  44, 72,
    72, 35, 35, 67, 35, 105, 72, 69,  72,  72, 50, 60, 48, 72, 66, 93, 65, 66, 59, 72, 37, 72,  84};

}  // namespace

double text_width(std::string_view text, double size, bool bold) {
  double hundredths = 0;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t begin = at;
    const char32_t c = decode_utf8(text, at);
    if (c >= ' ' && c <= '~')
      hundredths += (bold ? kBold : kRegular)[c - ' '];
    else  // characters outside ASCII: an upper estimate of their width
      hundredths +=
          std::array{0, bold ? 95 : 85,
                     110}[static_cast<std::size_t>(std::clamp(display_width(text.substr(begin, at - begin)), 0, 2))];
  }
  return hundredths / 100 * size;
}

}  // namespace heed
