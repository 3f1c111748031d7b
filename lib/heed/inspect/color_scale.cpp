#include "heed/inspect/color_scale.h"

#include <algorithm>
#include <cmath>

#include "heed/base/number_text.h"
#include "heed/inspect/picture_sizes.h"

namespace heed {

void draw_color_scale(Canvas& canvas, Point corner, const std::string& name, const ColorScale& scale,
                      const char* format, double width, Rgb (*color)(float)) {
  constexpr int kSteps = 100;
  constexpr double kHeight = 12, kNameWidth = 60;
  const double step = width / kSteps;
  const std::string low = number_text(scale.low == 0 ? "%g" : format, static_cast<double>(scale.low));
  const double x =
      corner.x + std::max(kNameWidth, std::ceil(text_width(name, kPictureFont) + text_width(low, kPictureFont)) + 14);
  const double y = corner.y;
  canvas.text({corner.x, y + 10}, name, {.size = kPictureFont});
  canvas.text({x - 4, y + 10}, low, {.size = kPictureFont, .anchor = Anchor::end});
  // The colour scale is a row of small rectangles, which overlap a little so that no gaps are visible between them.
  for (int i = 0; i < kSteps; ++i)
    canvas.rectangle({x + step * i, y}, i + 1 < kSteps ? step + 0.5 : step, kHeight,
                     color(static_cast<float>(i) / (kSteps - 1)));
  canvas.text({x + width + 6, y + 10}, number_text(format, static_cast<double>(scale.high)), {.size = kPictureFont});
}

}  // namespace heed
