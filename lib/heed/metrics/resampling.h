#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "heed/metrics/metric.h"

namespace heed {

/// A function that is told, again and again, how many of the random trials are done.
using TrialsDone = std::function<void(std::int64_t)>;

using TranslationMetrics = std::vector<std::unique_ptr<TranslationMetric>>;

/// An array of numbers that takes little memory: as long as all numbers are whole and from 0 to 255 (counts of words
/// nearly always are), each takes one byte; otherwise all numbers are stored as doubles.
class CompactNumbers {
 public:
  std::size_t size() const { return bytes_.size() + doubles_.size(); }
  double operator[](std::size_t i) const { return doubles_.empty() ? bytes_[i] : doubles_[i]; }
  void append(std::span<const double> numbers);
  /// Returns all numbers as bytes, or an empty span when the numbers are stored as doubles.
  std::span<const std::uint8_t> bytes() const { return bytes_; }

 private:
  std::vector<std::uint8_t> bytes_;
  // The numbers, if they do not fit into bytes_. Either bytes_ or doubles_ is empty.
  std::vector<double> doubles_;
};

/// The statistics (the counts that scores are computed from) of all segments of a corpus, with one row for each
/// segment. A row holds the statistics of all systems, one system after another, and for each system the statistics of
/// all metrics.
class SegmentStatistics {
 public:
  SegmentStatistics(const TranslationMetrics& metrics, std::size_t systems);

  std::size_t systems() const { return systems_; }
  const TranslationMetrics& metrics() const { return metrics_; }
  std::size_t segments() const { return rows_.size() / row_width(); }
  /// Returns how many numbers the row of one segment has, for all systems and all metrics.
  std::size_t row_width() const { return systems_ * system_width_; }
  /// Returns the index in a segment's row at which the numbers of this system and this metric begin.
  std::size_t offset(std::size_t system, std::size_t metric) const { return system * system_width_ + offsets_[metric]; }
  /// Returns the statistics of all segments, one row of row_width() numbers after another.
  const CompactNumbers& rows() const { return rows_; }
  void append(std::span<const double> rows) { rows_.append(rows); }
  /// Returns the sum of each column over all segments, added in the order of the segments. The result has row_width()
  /// elements.
  std::vector<double> sums() const;

 private:
  const TranslationMetrics& metrics_;
  std::size_t systems_, system_width_ = 0;
  std::vector<std::size_t> offsets_;
  CompactNumbers rows_;
};

/// A confidence interval of a score: the mean of the resampled scores, and half the width of the range that holds the
/// middle 95 % of these scores. `single` says that both numbers are float32.
struct Interval {
  double mean = 0, half_width = 0;
  bool single = false;
};

/// The scores of one system for one metric, one score for each random resample of the corpus. `single` says that all
/// scores are float32, like the elements of a NumPy array.
struct ResampledScores {
  std::vector<double> values;
  bool single = false;
};

/// Draws `samples` bootstrap resamples of the corpus (Koehn 2004) and returns the scores of each system for each
/// metric, at index [system * metrics + metric]. All systems and metrics use the same resamples. As in sacreBLEU, the
/// sums are float32 and are added segment after segment. The calling thread calls `tell`, if it is given.
std::vector<ResampledScores> bootstrap_scores(const SegmentStatistics& statistics, std::int64_t samples,
                                              std::uint64_t seed, int threads, const TrialsDone& tell = {});

/// Returns the confidence interval of the scores with their exact mean, as sacreBLEU reports it for a single system.
Interval exact_interval(const ResampledScores& scores);
/// Returns the confidence interval of the scores with their mean as NumPy computes it, which sacreBLEU reports when it
/// compares several systems.
Interval numpy_interval(const ResampledScores& scores);

/// Returns the p-value of a bootstrap test: the estimated probability that two systems' scores differ by more than
/// `difference` by chance alone. The estimate uses the scores of the same resamples for both systems.
double bootstrap_p_value(const ResampledScores& baseline, const ResampledScores& system, double difference);

/// Compares the systems 1, 2, ... with system 0 by paired approximate randomisation (Riezler and Maxwell 2005), and
/// returns the p-value of each system and metric at index [system * metrics + metric]. The p-value of system 0 is 1.
/// `scores` holds the scores for the whole corpus, at the same indices. The calling thread calls `tell`, if it is
/// given.
std::vector<double> randomization_p_values(const SegmentStatistics& statistics, std::span<const double> scores,
                                           std::int64_t trials, std::uint64_t seed, int threads,
                                           const TrialsDone& tell = {});

}  // namespace heed
