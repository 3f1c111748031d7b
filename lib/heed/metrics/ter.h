#pragma once

#include "heed/metrics/metric.h"
#include "heed/text/scoring/tercom.h"

namespace heed {

/// The metric Translation Edit Rate (Snover et al. 2006) as in sacreBLEU 2.6: 100 times the number of edits to the
/// nearest reference, divided by the mean length of the references in words. The statistics of a segment are the number
/// of edits and the mean length of the references.
class TerMetric : public TranslationMetric {
 public:
  explicit TerMetric(const TercomOptions& options) : options_(options) {}

  std::string name() const override { return "TER"; }
  std::string settings() const override;
  bool lower_is_better() const override { return true; }
  std::size_t width() const override { return 2; }
  std::unique_ptr<SegmentCounter> counter() const override;
  double score(std::span<const double> sums) const override;
  ResampledScore resampled_score(std::span<const float> sums) const override;

 private:
  TercomOptions options_;
};

}  // namespace heed
