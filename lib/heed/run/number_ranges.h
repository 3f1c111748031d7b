#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace heed {

/// A list of numbers from 1 in the form that users write: "3,7-9"; "7-" means 7 and all greater numbers.
class NumberRanges {
 public:
  /// Parses `text`. Throws UsageError naming `option` when `text` is not a list of numbers.
  static NumberRanges parse(std::string_view option, const std::string& text);

  bool contains(std::int64_t number) const;
  /// Returns the greatest number that the user wrote, such as 7 for "3,7-".
  std::int64_t greatest_named() const;
  /// Returns whether all numbers of the list are less than `number`.
  bool all_before(std::int64_t number) const;

 private:
  // The first and the last number of each range.
  std::vector<std::pair<std::int64_t, std::int64_t>> ranges_;
};

}  // namespace heed
