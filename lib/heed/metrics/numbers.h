#pragma once

#include <string>

namespace heed {

/// "41.02" with `width` decimals, rounded as the exact value demands.
std::string format_fixed(double value, int width);

/// A JSON number as Python writes it: the shortest digits that read back the same, with a point or an exponent.
std::string json_number(double value);
/// The same for a float32, whose shortest digits are fewer.
std::string json_number(float value);

}  // namespace heed
