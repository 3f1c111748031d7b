#include "heed/base/number_text.h"

#include <cstdio>

namespace heed {

std::string number_text(const char* format, double value) {
  char text[64];
  std::snprintf(text, sizeof text, format, value);
  return text;
}

}  // namespace heed
