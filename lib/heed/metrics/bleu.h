#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "heed/config/fields.h"
#include "heed/metrics/metric.h"
#include "heed/text/scoring/mteval.h"

namespace heed {

/// The ways to smooth an n-gram precision of zero, that is, when no n-gram of length n matches (Chen and Cherry 2014).
/// `total` is the number of n-grams of the hypotheses. `exp`: the k-th precision that is zero becomes 100 / (2^k *
/// total). `floor`: the zero becomes 100 * smooth_value / total. `add_k`: smooth_value is added to the matches and to
/// the total of every n > 1. `none`: the zero stays.
enum class BleuSmoothing { exp, floor, add_k, none };

template <>
struct EnumNames<BleuSmoothing> {
  static constexpr std::pair<BleuSmoothing, std::string_view> values[] = {{BleuSmoothing::exp, "exp"},
                                                                          {BleuSmoothing::floor, "floor"},
                                                                          {BleuSmoothing::add_k, "add-k"},
                                                                          {BleuSmoothing::none, "none"}};
};

/// The settings of BLEU (Papineni et al. 2002); the defaults are sacreBLEU's.
struct BleuOptions {
  MtevalMode tokenize = MtevalMode::v13a;
  bool lowercase = false;  ///< true: lines are lower-cased, by full Unicode rules, before they are tokenised
  BleuSmoothing smooth_method = BleuSmoothing::exp;
  /// The constant of the smoothing methods `floor` (default 0.1) and `add_k` (default 1); the other methods use no
  /// constant.
  std::optional<double> smooth_value;
  int max_order = 4;  ///< the largest n of the n-grams that are counted
  /// True: values of n for which the hypotheses have no n-grams, since they are too short, are left out of the score.
  bool effective_order = false;
};

/// A BLEU score and the values from which it is computed.
struct BleuScore {
  double score = 0;  ///< the BLEU score, from 0 to 100
  /// The smoothed precisions of the 1-grams, 2-grams, ..., in per cent; all 0 when no n-gram matches. Shape:
  /// [max_order].
  std::vector<double> precisions;
  double brevity_penalty = 1;
  std::int64_t hypothesis_length = 0, reference_length = 0;

  /// Returns the hypothesis length divided by the reference length, or 0 when the reference is empty.
  double length_ratio() const;
};

/// Computes BLEU from the statistics of segments, summed over the corpus. `sums` holds, in this order: the length of
/// the hypotheses; the length of the references (for each segment the reference whose length is nearest); for n = 1 ...
/// max_order the number of n-grams of the hypotheses that match a reference (clipped counts); and for n = 1 ...
/// max_order the number of all n-grams of the hypotheses. Lengths are in tokens. The arithmetic has the same order as
/// in sacreBLEU, so that all digits of the score are equal.
BleuScore bleu_score(std::span<const double> sums, const BleuOptions& options);

/// Returns the numbers that a BLEU score is made of, as sacreBLEU prints them behind the score: "60.1/40.2/30.3/20.4
/// (BP = 1.000 ratio = 1.000 hyp_len = 10 ref_len = 10)".
std::string bleu_details(const BleuScore& score);

/// The metric BLEU. The statistics of a segment are the 2 + 2 * max_order numbers whose sums bleu_score() takes.
class BleuMetric : public TranslationMetric {
 public:
  explicit BleuMetric(const BleuOptions& options) : options_(options) {}

  std::string name() const override { return "BLEU"; }
  std::string settings() const override;
  std::size_t width() const override { return 2 + 2 * static_cast<std::size_t>(options_.max_order); }
  std::unique_ptr<SegmentCounter> counter() const override;
  double score(std::span<const double> sums) const override;
  ResampledScore resampled_score(std::span<const float> sums) const override;
  double shuffled_score(std::span<const double> sums) const override;
  std::string details(std::span<const double> sums) const override;

 private:
  BleuOptions options_;
};

/// Computes the BLEU score of a corpus. `references[r][i]` is the r-th reference of `hypotheses[i]`. Throws Error when
/// the numbers of lines differ or when the corpus is empty.
BleuScore corpus_bleu(std::span<const std::string> hypotheses, std::span<const std::vector<std::string>> references,
                      const BleuOptions& options = {});

/// Computes the BLEU score of one sentence. sacreBLEU's command line sets the option effective_order for single
/// sentences; to get the same score, the caller must set options.effective_order.
BleuScore sentence_bleu(std::string_view hypothesis, std::span<const std::string> references,
                        const BleuOptions& options);

/// Returns the constant of the smoothing method that `options` chooses: options.smooth_value, or without this value the
/// default of the method; 0 for a method without a constant.
double smoothing_value(const BleuOptions& options);

/// Computes the sentence BLEU of two token sequences as the textbook defines it (Zhang et al., Dive into Deep Learning,
/// 10.7), from 0 to 1: exp(min(0, 1 - |reference| / |hypothesis|)) * product over n <= min(max_order, |hypothesis|) of
/// p_n^(1/2^n), where p_n is the precision of n-grams. Two empty sequences give 1; one empty sequence gives 0.
double d2l_bleu(std::span<const std::string_view> hypothesis, std::span<const std::string_view> reference,
                int max_order);

/// Computes the sentence BLEU of the textbook "Dive into Deep Learning" (see the function above) for two lines whose
/// tokens are separated by white space.
double d2l_bleu(std::string_view hypothesis, std::string_view reference, int max_order);

}  // namespace heed
