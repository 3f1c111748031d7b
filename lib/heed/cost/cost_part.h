#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace heed {

/// Converts a count to double.
inline double as_double(std::int64_t count) {
  return static_cast<double>(count);
}

/// A part of the time that all threads take, and what it is spent on. Amounts that are not counted are 0.
struct CostPart {
  std::string name;
  double seconds = 0;  ///< of all threads together
  double operations = 0;
  double bytes = 0;  ///< read and written
};

/// "41.7 %: 7.84 Mflop a target token at 288 Gflop/s": a part of `all` seconds, for so many tokens or pieces of that
/// name. Rates are those of one thread.
std::string describe(const CostPart& part, double all, double count, std::string_view unit);

}  // namespace heed
