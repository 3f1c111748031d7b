#pragma once

#include <string>

namespace heed {

/// Returns a number as text. `format` is a printf() format for one double, such as "%.2f", and the text may have other
/// characters, up to 63 in all; a longer text is cut.
std::string number_text(const char* format, double value);

}  // namespace heed
