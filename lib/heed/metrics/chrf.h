#pragma once

#include "heed/metrics/metric.h"

namespace heed {

/// The settings of chrF (Popović 2015) and chrF++ (Popović 2017: word_order 2); the defaults are sacreBLEU's.
struct ChrfOptions {
  int char_order = 6;       ///< the largest n of the n-grams of characters that are counted
  int word_order = 0;       ///< the largest n of the n-grams of words that are counted
  int beta = 2;             ///< recall is beta times as important as precision
  bool lowercase = false;   ///< true: lines are lower-cased by full Unicode rules before they are compared
  bool whitespace = false;  ///< true: white space is a part of the n-grams of characters; false: it is ignored
  /// True: a value of n for which a text has no n-grams gets a tiny F score. False: this value of n is left out of the
  /// mean over all n.
  bool eps_smoothing = false;
};

/// The metric chrF. The statistics of a segment are three numbers for each n of the n-grams of characters and then for
/// each n of the n-grams of words: how many n-grams the hypothesis has, how many the reference has, and how many both
/// share. With several references, only the reference with the best F score counts (the first of equally good
/// references).
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
