#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace heed {

/// Converts a count to double.
inline double as_double(std::int64_t count) {
  return static_cast<double>(count);
}

/// One part of the predicted time (such as attention), with the numbers of floating-point operations and bytes that the
/// part processes. A number that is not counted is 0.
struct CostPart {
  std::string name;
  /// The predicted seconds, summed over all threads.
  double seconds = 0;
  /// The number of floating-point operations; a multiply-add counts as two.
  double operations = 0;
  /// The number of bytes that are read from and written to memory.
  double bytes = 0;
};

/// Returns `part` as text: its percentage of `all` seconds, its work, and its speed, such as "41.7 %: 7.84 Mflop a
/// target token at 288 Gflop/s". `count` is the number of tokens or pieces by which the work is divided; `unit` is
/// their name, such as "target token". The speed (Gflop/s, GB/s) is that of one thread.
std::string describe(const CostPart& part, double all, double count, std::string_view unit);

}  // namespace heed
