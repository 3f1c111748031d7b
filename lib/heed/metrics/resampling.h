#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "heed/metrics/metric.h"

namespace heed {

using TranslationMetrics = std::vector<std::unique_ptr<TranslationMetric>>;

/// Numbers in the order they came: a byte each as long as all are whole and from 0 to 255, as counts of words nearly
/// always are, else doubles.
class CompactNumbers {
 public:
  std::size_t size() const { return bytes_.size() + doubles_.size(); }
  double operator[](std::size_t i) const { return doubles_.empty() ? bytes_[i] : doubles_[i]; }
  void append(std::span<const double> numbers);
  /// All of them; none where they are doubles.
  std::span<const std::uint8_t> bytes() const { return bytes_; }

 private:
  std::vector<std::uint8_t> bytes_;
  std::vector<double> doubles_;  // one of the two is empty
};

/// The statistics of a corpus, segment by segment: of every system, and for each system of every metric.
class SegmentStatistics {
 public:
  SegmentStatistics(const TranslationMetrics& metrics, std::size_t systems);

  std::size_t systems() const { return systems_; }
  const TranslationMetrics& metrics() const { return metrics_; }
  std::size_t segments() const { return rows_.size() / row_width(); }
  /// Numbers a segment has.
  std::size_t row_width() const { return systems_ * system_width_; }
  /// Where the numbers of a system's metric begin in a row.
  std::size_t offset(std::size_t system, std::size_t metric) const { return system * system_width_ + offsets_[metric]; }
  /// [segments(), row_width()]
  const CompactNumbers& rows() const { return rows_; }
  void append(std::span<const double> rows) { rows_.append(rows); }
  /// Sums of the columns, segment after segment.
  std::vector<double> sums() const;

 private:
  const TranslationMetrics& metrics_;
  std::size_t systems_, system_width_ = 0;
  std::vector<std::size_t> offsets_;
  CompactNumbers rows_;
};

/// A mean and half the width of the interval that holds the middle 95 % of the scores. `single`: both are float32.
struct Interval {
  double mean = 0, half_width = 0;
  bool single = false;
};

/// The scores of one system and metric on every resample, as one NumPy array: in float32 where all are.
struct ResampledScores {
  std::vector<double> values;
  bool single = false;
};

/// Scores of `samples` bootstrap resamples (Koehn 2004), [system * metrics + metric]; all of them use the same draws.
/// Sums are float32, segment after segment, as sacreBLEU's are.
std::vector<ResampledScores> bootstrap_scores(const SegmentStatistics& statistics, std::int64_t samples,
                                              std::uint64_t seed, int threads);

/// With the exact mean, as sacreBLEU reports a single system, or with NumPy's, as it reports tested systems.
Interval exact_interval(const ResampledScores& scores);
Interval numpy_interval(const ResampledScores& scores);

/// How probable the difference `difference` of two systems' scores is by chance, from their resampled scores.
double bootstrap_p_value(const ResampledScores& baseline, const ResampledScores& system, double difference);

/// Paired approximate randomisation (Riezler and Maxwell 2005): p-values of systems 1, 2, ... against system 0,
/// [system * metrics + metric] (1 for system 0). `scores` are those of the whole corpus, in the same order.
std::vector<double> randomization_p_values(const SegmentStatistics& statistics, std::span<const double> scores,
                                           std::int64_t trials, std::uint64_t seed, int threads);

}  // namespace heed
