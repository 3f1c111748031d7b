#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>

#include "heed/base/error.h"
#include "heed/config/fields.h"

namespace heed {

/// The names of all metrics. The tool `bleu` computes the first five from the output of a model; the tool `train`
/// can validate a model with some of these, with the accuracy of labels (the share of equal lines), the mean
/// cross-entropy of a target token (ce_mean_words, after Marian's name) and the perplexity.
enum class Metric { bleu, chrf, ter, exact, evalb, accuracy, ce_mean_words, perplexity };

template <>
struct EnumNames<Metric> {
  static constexpr std::pair<Metric, std::string_view> values[] = {{Metric::bleu, "bleu"},
                                                                   {Metric::chrf, "chrf"},
                                                                   {Metric::ter, "ter"},
                                                                   {Metric::exact, "exact"},
                                                                   {Metric::evalb, "evalb"},
                                                                   {Metric::accuracy, "accuracy"},
                                                                   {Metric::ce_mean_words, "ce-mean-words"},
                                                                   {Metric::perplexity, "perplexity"}};
};

/// Returns whether a larger score of the metric is a better score.
inline bool larger_is_better(Metric metric) {
  return metric != Metric::ter && metric != Metric::ce_mean_words && metric != Metric::perplexity;
}

/// The exception for a line that a metric cannot read, such as a tree with a bracket too many. It says which side the
/// line is of; the caller knows the names of the files.
class SegmentError : public LineError {
 public:
  SegmentError(bool of_reference, std::size_t column, const std::string& message)
      : LineError(column, message), in_reference(of_reference) {}

  bool in_reference;
};

/// Computes, for one metric, the statistics of one segment (usually a sentence) after another. A counter reuses its
/// allocated memory for the next segment, and each thread has a counter of its own.
class SegmentCounter {
 public:
  virtual ~SegmentCounter() = default;

  /// Sets the reference translations of the segment whose hypotheses the next calls of count() get. At least one
  /// reference is needed; an empty line is a reference too. The lines must exist until the next call of
  /// set_references(). Throws SegmentError for a line that the metric cannot read.
  virtual void set_references(std::span<const std::string_view> references) = 0;
  /// Computes the statistics of a hypothesis of the present segment and writes them into `row`, which has
  /// TranslationMetric::width() elements. Throws SegmentError for a line that the metric cannot read.
  virtual void count(std::string_view hypothesis, std::span<double> row) = 0;
};

/// The score of one resample (a random sample of a corpus' segments). sacreBLEU computes some of these scores in
/// float32; `single` says that this score is a float32 there, so that means and differences of such scores are rounded
/// to float32 too.
struct ResampledScore {
  double value = 0;
  bool single = false;
};

/// A metric that scores translations. The statistics of segments are added up over a corpus, and the score is a
/// function of the sums. There are three score functions, since sacreBLEU computes in three ways: with Python's numbers
/// for the corpus, with float32 for bootstrap resamples, and with NumPy's 64-bit numbers for systems whose segments
/// were shuffled.
class TranslationMetric {
 public:
  virtual ~TranslationMetric() = default;

  /// Returns the name of the metric that reports print: "BLEU", "chrF2++", "TER".
  virtual std::string name() const = 0;
  /// Returns the settings that the score depends on, in the form that sacreBLEU's signature has:
  /// "case:mixed|eff:yes|nc:6|nw:0|space:no".
  virtual std::string settings() const = 0;
  virtual bool lower_is_better() const { return false; }

  /// Returns the number of elements that the statistics of one segment have.
  virtual std::size_t width() const = 0;
  /// Returns a new object that computes this metric's statistics of segments, for one thread.
  virtual std::unique_ptr<SegmentCounter> counter() const = 0;

  /// Returns the metric's score for a corpus from the sums of its segments' statistics.
  virtual double score(std::span<const double> sums) const = 0;
  /// Returns the score of a bootstrap resample of the corpus from the sums of its segments' statistics, computed in
  /// float32 as in sacreBLEU.
  virtual ResampledScore resampled_score(std::span<const float> sums) const = 0;
  /// Returns the score of a system some of whose segments were swapped with another system's for a significance test,
  /// from the sums of the segments' statistics, computed as in sacreBLEU.
  virtual double shuffled_score(std::span<const double> sums) const { return score(sums); }
  /// Returns the details that a report prints behind the score, such as BLEU's precisions; empty for most metrics.
  virtual std::string details(std::span<const double>) const { return {}; }
};

/// A significance test and its parameters. `test` is the abbreviation in a signature: "bs" for bootstrap resampling,
/// "ar" for approximate randomisation.
struct Resampling {
  std::string_view test;
  std::int64_t samples = 0;
  std::uint64_t seed = 0;
};

/// Returns the signature of a score, a text that names all settings:
/// "nrefs:1|case:mixed|eff:no|tok:13a|smooth:exp|version:heed.0.1.0". Two scores are comparable when their signatures
/// are equal. The signature equals sacreBLEU's, except that the version names heed.
std::string signature(const TranslationMetric& metric, std::size_t references,
                      const std::optional<Resampling>& resampling = {});

/// Returns the signature in its short form, with sacreBLEU's abbreviations:
/// "#:1|c:mixed|e:no|tok:13a|s:exp|v:heed.0.1.0".
std::string short_signature(std::string_view signature);

}  // namespace heed
