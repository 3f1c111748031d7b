#pragma once

#include <string>

namespace heed {

/// Returns a number with `width` decimals, such as "41.02", correctly rounded from its exact binary value.
std::string format_fixed(double value, int width);

/// Returns a number in the form in which Python writes it to JSON: with the fewest digits from which the same double is
/// read back, and with a decimal point or an exponent.
std::string json_number(double value);
/// Returns a float32 number as text for JSON, with the fewest digits from which the same float32 is read back.
std::string json_number(float value);

}  // namespace heed
