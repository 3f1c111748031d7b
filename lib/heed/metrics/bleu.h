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

/// What stands in for an n-gram precision of zero (Chen and Cherry 2014): half of what the last zero got (exp), a fixed
/// count (floor), k added to matches and totals of n > 1 (add_k), or nothing.
enum class BleuSmoothing { exp, floor, add_k, none };

template <>
struct EnumNames<BleuSmoothing> {
  static constexpr std::pair<BleuSmoothing, std::string_view> values[] = {{BleuSmoothing::exp, "exp"},
                                                                          {BleuSmoothing::floor, "floor"},
                                                                          {BleuSmoothing::add_k, "add-k"},
                                                                          {BleuSmoothing::none, "none"}};
};

/// How BLEU (Papineni et al. 2002) is computed; the defaults are sacreBLEU's.
struct BleuOptions {
  MtevalMode tokenize = MtevalMode::v13a;
  bool lowercase = false;  ///< full Unicode lower-casing before tokenising
  BleuSmoothing smooth_method = BleuSmoothing::exp;
  std::optional<double> smooth_value;  ///< of floor (default 0.1) and add_k (default 1)
  int max_order = 4;                   ///< longest n-gram
  bool effective_order = false;        ///< leave out the orders the hypothesis is too short for
};

/// A score and what it is made of.
struct BleuScore {
  double score = 0;                ///< 0 to 100
  std::vector<double> precisions;  ///< [max_order] per cent, smoothed; all 0 where nothing matches
  double brevity_penalty = 1;
  std::int64_t hypothesis_length = 0, reference_length = 0;

  /// Hypothesis length over reference length, 0 where there is no reference text.
  double length_ratio() const;
};

/// BLEU of summed statistics: hypothesis length, length of the references nearest in length (both in tokens), then for
/// each order the n-grams found in a reference, clipped, then for each order the n-grams of the hypotheses. Every step
/// is taken in the order sacreBLEU takes it, so that the digits are the same.
BleuScore bleu_score(std::span<const double> sums, const BleuOptions& options);

/// "60.1/40.2/30.3/20.4 (BP = 1.000 ratio = 1.000 hyp_len = 10 ref_len = 10)".
std::string bleu_details(const BleuScore& score);

/// BLEU as one metric of several; its statistics are those of bleu_score().
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

/// BLEU of a corpus. `references[r][i]` is the r-th reference of `hypotheses[i]`. Throws Error where the numbers of
/// lines differ or nothing is there to score.
BleuScore corpus_bleu(std::span<const std::string> hypotheses, std::span<const std::vector<std::string>> references,
                      const BleuOptions& options = {});

/// BLEU of one sentence; set options.effective_order as sacreBLEU's command line does.
BleuScore sentence_bleu(std::string_view hypothesis, std::span<const std::string> references,
                        const BleuOptions& options);

/// The value that smooth_method takes: options.smooth_value or the method's default; 0 where it takes none.
double smoothing_value(const BleuOptions& options);

/// The textbook's sentence BLEU (Zhang et al., Dive into Deep Learning, 10.7) of two token sequences, 0 to 1:
/// exp(min(0, 1 - |reference| / |hypothesis|)) * product over n <= min(max_order, |hypothesis|) of p_n^(1/2^n).
/// Two empty sequences give 1, one empty sequence 0.
double d2l_bleu(std::span<const std::string_view> hypothesis, std::span<const std::string_view> reference,
                int max_order);

/// The same on the tokens that white space separates.
double d2l_bleu(std::string_view hypothesis, std::string_view reference, int max_order);

}  // namespace heed
