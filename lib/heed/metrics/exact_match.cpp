#include "heed/metrics/exact_match.h"

#include <algorithm>
#include <vector>

#include "heed/metrics/numbers.h"

namespace heed {
namespace {

class ExactMatchCounter : public SegmentCounter {
 public:
  void set_references(std::span<const std::string_view> references) override { references_ = references; }
  void count(std::string_view hypothesis, std::span<double> row) override {
    row[0] = std::find(references_.begin(), references_.end(), hypothesis) != references_.end() ? 1 : 0;
    row[1] = 1;
  }

 private:
  std::span<const std::string_view> references_;
};

}  // namespace

std::unique_ptr<SegmentCounter> ExactMatchMetric::counter() const {
  return std::make_unique<ExactMatchCounter>();
}

double ExactMatchMetric::score(std::span<const double> sums) const {
  return sums[1] > 0 ? 100 * sums[0] / sums[1] : 0;
}

ResampledScore ExactMatchMetric::resampled_score(std::span<const float> sums) const {
  return {score(std::vector<double>(sums.begin(), sums.end())), false};
}

std::string ExactMatchMetric::details(std::span<const double> sums) const {
  return "(" + format_fixed(sums[0], 0) + " of " + format_fixed(sums[1], 0) + " lines)";
}

}  // namespace heed
