#pragma once

#include "heed/metrics/metric.h"

namespace heed {

/// The metric exact match: the share, in percent, of lines that equal one of their references, byte for byte. For
/// labels, this is the accuracy. The statistics of a segment are whether it is equal, and 1.
class ExactMatchMetric : public TranslationMetric {
 public:
  std::string name() const override { return "exact"; }
  std::string settings() const override { return "case:mixed"; }
  std::size_t width() const override { return 2; }
  std::unique_ptr<SegmentCounter> counter() const override;
  double score(std::span<const double> sums) const override;
  ResampledScore resampled_score(std::span<const float> sums) const override;
  std::string details(std::span<const double> sums) const override;
};

}  // namespace heed
