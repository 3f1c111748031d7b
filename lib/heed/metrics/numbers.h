#pragma once

#include <string>

namespace heed {

/// Returns a number with `width` decimals, such as "41.02", correctly rounded from its exact binary value.
std::string format_fixed(double value, int width);

/// Returns a number for JSON as Python writes it: the fewest digits from which the same double is read back, with a
/// point or an exponent.
std::string json_number(double value);
/// Returns a float32 for JSON: the fewest digits from which the same float32 is read back.
std::string json_number(float value);

}  // namespace heed
