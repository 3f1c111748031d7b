#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace heed {

/// Converts a count to double.
inline double as_double(std::int64_t count) {
  return static_cast<double>(count);
}

/// One part of the predicted time (such as attention), with the work done in that time. Work that is not counted is 0.
struct CostPart {
  std::string name;
  double seconds = 0;  ///< predicted seconds, summed over all threads
  /// Floating-point operations; a multiply-add counts as two.
  double operations = 0;
  double bytes = 0;  ///< bytes read and written
};

/// Describes a part of `all` seconds: "41.7 %: 7.84 Mflop a target token at 288 Gflop/s". The work is divided by
/// `count`, the number of tokens or pieces; `unit` is their name. The rates (Gflop/s, GB/s) are per thread.
std::string describe(const CostPart& part, double all, double count, std::string_view unit);

}  // namespace heed
