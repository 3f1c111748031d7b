#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "heed/metrics/metric.h"

namespace heed {

using TranslationMetrics = std::vector<std::unique_ptr<TranslationMetric>>;

/// A sequence of numbers that takes little memory: each number takes one byte as long as all numbers are whole and from
/// 0 to 255 (counts of words nearly always are); otherwise all numbers are doubles.
class CompactNumbers {
 public:
  std::size_t size() const { return bytes_.size() + doubles_.size(); }
  double operator[](std::size_t i) const { return doubles_.empty() ? bytes_[i] : doubles_[i]; }
  void append(std::span<const double> numbers);
  /// Returns all numbers as bytes, or nothing when the numbers are doubles.
  std::span<const std::uint8_t> bytes() const { return bytes_; }

 private:
  std::vector<std::uint8_t> bytes_;
  // Either bytes_ or doubles_ is empty.
  std::vector<double> doubles_;
};

/// The statistics of all segments of a corpus. The row of a segment holds the numbers of all systems, one system after
/// another, and for each system the numbers of all metrics.
class SegmentStatistics {
 public:
  SegmentStatistics(const TranslationMetrics& metrics, std::size_t systems);

  std::size_t systems() const { return systems_; }
  const TranslationMetrics& metrics() const { return metrics_; }
  std::size_t segments() const { return rows_.size() / row_width(); }
  /// Returns how many numbers the row of one segment has.
  std::size_t row_width() const { return systems_ * system_width_; }
  /// Returns the place in a row where the numbers of this system and this metric begin.
  std::size_t offset(std::size_t system, std::size_t metric) const { return system * system_width_ + offsets_[metric]; }
  /// Returns the rows, [segments(), row_width()].
  const CompactNumbers& rows() const { return rows_; }
  void append(std::span<const double> rows) { rows_.append(rows); }
  /// Returns the sums of the columns, added segment after segment.
  std::vector<double> sums() const;

 private:
  const TranslationMetrics& metrics_;
  std::size_t systems_, system_width_ = 0;
  std::vector<std::size_t> offsets_;
  CompactNumbers rows_;
};

/// A confidence interval: the mean of the scores, and half the width of the interval that holds the middle 95 % of the
/// scores. `single` says that both numbers are float32.
struct Interval {
  double mean = 0, half_width = 0;
  bool single = false;
};

/// The scores of one system and one metric, one score for each resample, like an array of NumPy: `single` says that all
/// scores are float32.
struct ResampledScores {
  std::vector<double> values;
  bool single = false;
};

/// Returns the scores of `samples` bootstrap resamples (Koehn 2004) at [system * metrics + metric]. All systems and
/// metrics use the same resamples. As in sacreBLEU, the sums are float32 and are added segment after segment.
std::vector<ResampledScores> bootstrap_scores(const SegmentStatistics& statistics, std::int64_t samples,
                                              std::uint64_t seed, int threads);

/// Returns the interval of the scores around their exact mean, as sacreBLEU reports for a single system.
Interval exact_interval(const ResampledScores& scores);
/// Returns the interval of the scores around their mean as NumPy computes it, as sacreBLEU reports for tested systems.
Interval numpy_interval(const ResampledScores& scores);

/// Returns the probability that chance alone makes two systems' scores differ by `difference`, estimated from the
/// resampled scores of the two systems.
double bootstrap_p_value(const ResampledScores& baseline, const ResampledScores& system, double difference);

/// Returns the p-values of a test by paired approximate randomisation (Riezler and Maxwell 2005) at [system * metrics +
/// metric]: systems 1, 2, ... are compared with system 0, and the p-value of system 0 is 1. `scores` are the scores of
/// the whole corpus, at the same places.
std::vector<double> randomization_p_values(const SegmentStatistics& statistics, std::span<const double> scores,
                                           std::int64_t trials, std::uint64_t seed, int threads);

}  // namespace heed
