#include "heed/inspect/canvas.h"

#include "heed/base/utf8.h"

namespace heed {

double text_width(std::string_view text, double size, bool bold) {
  return display_width(text) * size * (bold ? 0.66 : 0.6);
}

}  // namespace heed
