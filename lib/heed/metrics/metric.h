#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>

#include "heed/config/fields.h"

namespace heed {

/// The names of all metrics. The tool `bleu` computes the first three from translations; `train` also validates with
/// the model's cross-entropy (ce_mean_words, per word) and perplexity.
enum class Metric { bleu, chrf, ter, ce_mean_words, perplexity };

template <>
struct EnumNames<Metric> {
  static constexpr std::pair<Metric, std::string_view> values[] = {{Metric::bleu, "bleu"},
                                                                   {Metric::chrf, "chrf"},
                                                                   {Metric::ter, "ter"},
                                                                   {Metric::ce_mean_words, "ce-mean-words"},
                                                                   {Metric::perplexity, "perplexity"}};
};

/// Returns whether a larger score of the metric is a better score.
inline bool larger_is_better(Metric metric) {
  return metric == Metric::bleu || metric == Metric::chrf;
}

/// Computes the statistics of segments, one segment after another, for one metric. A counter keeps its memory between
/// segments, and each thread has a counter of its own.
class SegmentCounter {
 public:
  virtual ~SegmentCounter() = default;

  /// Sets the references of the segment that the next hypotheses belong to: at least one, and an empty line is a
  /// reference too. The lines must exist until the next call of set_references().
  virtual void set_references(std::span<const std::string_view> references) = 0;
  /// Writes the statistics of a hypothesis of the present segment into `row`, which has TranslationMetric::width()
  /// numbers.
  virtual void count(std::string_view hypothesis, std::span<double> row) = 0;
};

/// The score of one resample. NumPy computes some scores in float32; `single` says that this score is a float32 in
/// NumPy, so that means and differences of such scores are rounded to float32 too.
struct ResampledScore {
  double value = 0;
  bool single = false;
};

/// A metric of translations. The statistics of segments are added up over a corpus, and the score is a function of the
/// sums. There are three score functions since sacreBLEU computes with different numbers: with Python's numbers for the
/// corpus, with float32 for bootstrap resamples, and with NumPy's 64-bit numbers for shuffled systems.
class TranslationMetric {
 public:
  virtual ~TranslationMetric() = default;

  /// Returns the metric's name in reports: "BLEU", "chrF2++", "TER".
  virtual std::string name() const = 0;
  /// Returns the settings that the score depends on, as the signature shows them:
  /// "case:mixed|eff:yes|nc:6|nw:0|space:no".
  virtual std::string settings() const = 0;
  virtual bool lower_is_better() const { return false; }

  /// Returns how many numbers the statistics of one segment have.
  virtual std::size_t width() const = 0;
  /// Returns a new counter of this metric, for one thread.
  virtual std::unique_ptr<SegmentCounter> counter() const = 0;

  /// Returns the score of a corpus from the sums of its segments' statistics.
  virtual double score(std::span<const double> sums) const = 0;
  /// Returns the score of a bootstrap resample, computed in float32 as sacreBLEU does.
  virtual ResampledScore resampled_score(std::span<const float> sums) const = 0;
  /// Returns the score of a system whose segments were shuffled with another system's, computed as sacreBLEU does.
  virtual double shuffled_score(std::span<const double> sums) const { return score(sums); }
  /// Returns the parts of a score for the report, such as BLEU's precisions; most metrics return nothing.
  virtual std::string details(std::span<const double>) const { return {}; }
};

/// A test of significance, as a signature names it: "bs" is bootstrap resampling, "ar" is approximate randomisation.
struct Resampling {
  std::string_view test;
  std::int64_t samples = 0;
  std::uint64_t seed = 0;
};

/// Returns the signature of a score, such as "nrefs:1|case:mixed|eff:no|tok:13a|smooth:exp|version:heed.0.1.0": two
/// scores are comparable when their signatures are equal. The signature equals sacreBLEU's, except that the version
/// names heed.
std::string signature(const TranslationMetric& metric, std::size_t references,
                      const std::optional<Resampling>& resampling = {});

/// Returns a signature with sacreBLEU's abbreviations: "#:1|c:mixed|e:no|tok:13a|s:exp|v:heed.0.1.0".
std::string short_signature(std::string_view signature);

}  // namespace heed
