#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace heed {

/// Numbers from 1 as a user lists them: "3,7-9"; "7-" has no end.
class NumberRanges {
 public:
  /// Throws UsageError that names `option`.
  static NumberRanges parse(std::string_view option, const std::string& text);

  bool contains(std::int64_t number) const;
  /// The greatest number that is asked for by name (of "3,7-" the 7).
  std::int64_t greatest_named() const;
  /// No number from `number` on is contained.
  bool all_before(std::int64_t number) const;

 private:
  std::vector<std::pair<std::int64_t, std::int64_t>> ranges_;  // first and last
};

}  // namespace heed
