#pragma once

#include "heed/metrics/metric.h"

namespace heed {

/// How chrF (Popović 2015) and chrF++ (Popović 2017: word_order 2) are computed; the defaults are sacreBLEU's.
struct ChrfOptions {
  int char_order = 6;          ///< longest character n-gram
  int word_order = 0;          ///< longest word n-gram
  int beta = 2;                ///< how many times recall weighs more than precision
  bool lowercase = false;      ///< full Unicode lower-casing
  bool whitespace = false;     ///< white space is part of the character n-grams
  bool eps_smoothing = false;  ///< a tiny F for an order without n-grams, instead of leaving the order out
};

/// Statistics: for each order (characters, then words) the n-grams of the hypothesis, of the reference, and those they
/// share. Of several references the one with the best F score counts, the first of equally good ones.
class ChrfMetric : public TranslationMetric {
 public:
  explicit ChrfMetric(const ChrfOptions& options) : options_(options) {}

  std::string name() const override;
  std::string settings() const override;
  std::size_t width() const override { return 3 * static_cast<std::size_t>(options_.char_order + options_.word_order); }
  std::unique_ptr<SegmentCounter> counter() const override;
  double score(std::span<const double> sums) const override;
  ResampledScore resampled_score(std::span<const float> sums) const override;

 private:
  ChrfOptions options_;
};

}  // namespace heed
