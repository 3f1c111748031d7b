#include "heed/run/number_ranges.h"

#include <algorithm>
#include <charconv>
#include <limits>

#include "heed/base/error.h"

namespace heed {
namespace {

constexpr auto kNoEnd = std::numeric_limits<std::int64_t>::max();

}  // namespace

NumberRanges NumberRanges::parse(std::string_view option, const std::string& text) {
  NumberRanges out;
  const auto fail = [&] {
    throw UsageError("--" + std::string(option) + " '" + text + "': not a list of numbers from 1 (say 3,7-9)");
  };
  const auto number = [&](std::string_view digits) {
    std::int64_t value = 0;
    const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), value);
    if (error != std::errc() || end != digits.data() + digits.size() || value < 1) fail();
    return value;
  };
  for (std::string_view rest = text;;) {
    const std::size_t comma = rest.find(',');
    const std::string_view part = rest.substr(0, comma);
    const std::size_t dash = part.find('-');
    const std::int64_t first = number(part.substr(0, dash));
    const std::int64_t last = dash == std::string_view::npos ? first
                              : dash + 1 == part.size()      ? kNoEnd
                                                             : number(part.substr(dash + 1));
    if (last < first) fail();
    out.ranges_.emplace_back(first, last);
    if (comma == std::string_view::npos) return out;
    rest.remove_prefix(comma + 1);
  }
}

bool NumberRanges::contains(std::int64_t number) const {
  return std::any_of(ranges_.begin(), ranges_.end(),
                     [number](const auto& range) { return range.first <= number && number <= range.second; });
}

std::int64_t NumberRanges::greatest_named() const {
  std::int64_t greatest = 0;
  for (const auto& [first, last] : ranges_) greatest = std::max(greatest, last == kNoEnd ? first : last);
  return greatest;
}

bool NumberRanges::all_before(std::int64_t number) const {
  return std::all_of(ranges_.begin(), ranges_.end(), [number](const auto& range) { return range.second < number; });
}

}  // namespace heed
