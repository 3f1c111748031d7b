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

/// What translations are scored by: metrics of translations that `bleu` computes, and the model's own cross-entropy and
/// perplexity, which `train` validates beside BLEU.
enum class Metric { bleu, chrf, ter, ce_mean_words, perplexity };

template <>
struct EnumNames<Metric> {
  static constexpr std::pair<Metric, std::string_view> values[] = {{Metric::bleu, "bleu"},
                                                                   {Metric::chrf, "chrf"},
                                                                   {Metric::ter, "ter"},
                                                                   {Metric::ce_mean_words, "ce-mean-words"},
                                                                   {Metric::perplexity, "perplexity"}};
};

/// Whether a larger score is a better one.
inline bool larger_is_better(Metric metric) {
  return metric == Metric::bleu || metric == Metric::chrf;
}

/// Counts one segment after another and keeps its memory between them; one for each thread.
class SegmentCounter {
 public:
  virtual ~SegmentCounter() = default;

  /// The references of the segment the next hypotheses belong to (at least one; an empty line is a reference too). The
  /// lines must live until the next call.
  virtual void set_references(std::span<const std::string_view> references) = 0;
  /// Writes the statistics of a hypothesis for that segment into `row`, TranslationMetric::width() numbers.
  virtual void count(std::string_view hypothesis, std::span<double> row) = 0;
};

/// A score as NumPy has it after computing in float32: `single` says that the result is itself a float32 there, so that
/// what is computed from it (means, differences) is rounded to float32 too.
struct ResampledScore {
  double value = 0;
  bool single = false;
};

/// A way to score translations: the statistics of segments add up over a corpus, and the score is a function of the
/// sums. The three score functions differ in their arithmetic only: sacreBLEU computes with Python's numbers on the
/// corpus, in float32 on bootstrap resamples and in NumPy's 64-bit numbers on shuffled systems.
class TranslationMetric {
 public:
  virtual ~TranslationMetric() = default;

  /// "BLEU", "chrF2++", "TER".
  virtual std::string name() const = 0;
  /// What the score depends on, as the signature shows it: "case:mixed|eff:yes|nc:6|nw:0|space:no".
  virtual std::string settings() const = 0;
  virtual bool lower_is_better() const { return false; }

  virtual std::size_t width() const = 0;
  virtual std::unique_ptr<SegmentCounter> counter() const = 0;

  virtual double score(std::span<const double> sums) const = 0;
  virtual ResampledScore resampled_score(std::span<const float> sums) const = 0;
  virtual double shuffled_score(std::span<const double> sums) const { return score(sums); }
  /// What the score is made of, for the reader: BLEU's precisions; most metrics have nothing to add.
  virtual std::string details(std::span<const double>) const { return {}; }
};

/// The test of significance a signature names: "bs" (bootstrap) or "ar" (approximate randomisation).
struct Resampling {
  std::string_view test;
  std::int64_t samples = 0;
  std::uint64_t seed = 0;
};

/// "nrefs:1|case:mixed|eff:no|tok:13a|smooth:exp|version:heed.0.1.0": what has to be equal for two scores to be
/// comparable. sacreBLEU's, but for the version, which names the program that counted.
std::string signature(const TranslationMetric& metric, std::size_t references,
                      const std::optional<Resampling>& resampling = {});

/// A signature with sacreBLEU's abbreviations: "#:1|c:mixed|e:no|tok:13a|s:exp|v:heed.0.1.0".
std::string short_signature(std::string_view signature);

}  // namespace heed
