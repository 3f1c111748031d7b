#include "heed/metrics/numbers.h"

#include <array>
#include <charconv>
#include <cmath>

#include "heed/base/error.h"

namespace heed {
namespace {

template <class Real>
std::string shortest(Real value) {
  const Real size = std::abs(value);
  const auto form =
      size != 0 && (size < Real(1e-4) || size >= Real(1e16)) ? std::chars_format::scientific : std::chars_format::fixed;
  std::array<char, 64> buffer;
  const auto result = std::to_chars(buffer.data(), buffer.data() + buffer.size(), value, form);
  if (result.ec != std::errc()) throw Error("internal: a number too long to print");
  std::string text(buffer.data(), result.ptr);
  if (text.find_first_of(".en") == std::string::npos) text += ".0";
  return text;
}

}  // namespace

std::string format_fixed(double value, int width) {
  std::array<char, 512> buffer;
  const auto result =
      std::to_chars(buffer.data(), buffer.data() + buffer.size(), value, std::chars_format::fixed, width);
  if (result.ec != std::errc()) throw Error("internal: a number too long to print");
  return std::string(buffer.data(), result.ptr);
}

std::string json_number(double value) {
  return shortest(value);
}

std::string json_number(float value) {
  return shortest(value);
}

}  // namespace heed
