#include "heed/metrics/bleu.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>

#include "heed/base/error.h"
#include "heed/metrics/ngram_matcher.h"
#include "heed/metrics/numbers.h"
#include "heed/text/strings/unicode.h"

namespace heed {
namespace {

/// Returns the logarithm of an n-gram precision. For the precision 0 returns a negative number far below all other
/// results, as sacreBLEU does, and not minus infinity.
double floored_log(double value) {
  return value == 0 ? -9999999999.0 : std::log(value);
}

/// Lower-cases (if wanted) and tokenises lines, and owns the text of the last line's tokens.
class Preprocessor {
 public:
  explicit Preprocessor(const BleuOptions& options) : lowercase_(options.lowercase), tokenizer_(options.tokenize) {}

  const std::vector<std::string_view>& tokens(std::string_view line) {
    if (lowercase_) {
      lowered_ = to_lower(line);
      line = lowered_;
    }
    return tokenizer_.tokens(strip_trailing_space(line));
  }

 private:
  bool lowercase_;
  MtevalTokenizer tokenizer_;
  std::string lowered_;
};

/// Computes BLEU from the summed statistics of a corpus. The counts have the type `Number` (float or double).
/// add(count, k) returns the sum count + k for the smoothing method add_k, rounded as the caller wants.
template <class Number, class Add>
BleuScore score_sums(std::span<const Number> sums, const BleuOptions& options, const Add& add) {
  const auto orders = static_cast<std::size_t>(options.max_order);
  const auto counts = sums.subspan(2, orders), totals = sums.subspan(2 + orders, orders);
  BleuScore out;
  out.precisions.resize(orders);
  out.hypothesis_length = static_cast<std::int64_t>(sums[0]);
  out.reference_length = static_cast<std::int64_t>(sums[1]);
  if (out.hypothesis_length < out.reference_length)
    out.brevity_penalty =
        out.hypothesis_length > 0
            ? std::exp(1 - static_cast<double>(out.reference_length) / static_cast<double>(out.hypothesis_length))
            : 0;
  if (std::all_of(counts.begin(), counts.end(), [](Number count) { return count == 0; })) return out;

  const double value = smoothing_value(options);
  double halved = 1;
  std::size_t order = orders;
  for (std::size_t n = 0; n < orders; ++n) {
    Number matches = counts[n], total = totals[n];
    if (options.smooth_method == BleuSmoothing::add_k && n > 0) {
      matches = add(matches, static_cast<Number>(value));
      total = add(total, static_cast<Number>(value));
    }
    if (total == 0) break;
    if (options.effective_order) order = n + 1;
    if (matches != 0) {
      out.precisions[n] = static_cast<double>(100 * matches / total);
    } else if (options.smooth_method == BleuSmoothing::exp) {
      halved *= 2;
      out.precisions[n] = static_cast<double>(100 / (static_cast<Number>(halved) * total));
    } else if (options.smooth_method == BleuSmoothing::floor) {
      out.precisions[n] = static_cast<double>(static_cast<Number>(100 * value) / total);
    }
  }
  double log_sum = 0;
  for (std::size_t n = 0; n < order; ++n) log_sum += floored_log(out.precisions[n]);
  out.score = out.brevity_penalty * std::exp(log_sum / static_cast<double>(order));
  return out;
}

/// Computes the BLEU statistics of one segment after another: tokenises the hypothesis and counts the n-grams that
/// match a reference.
class BleuCounter : public SegmentCounter {
 public:
  explicit BleuCounter(const BleuOptions& options)
      : options_(options), hypothesis_(options), matcher_(options.max_order), matches_(orders()) {}

  void set_references(std::span<const std::string_view> references) override {
    matcher_.clear();
    reference_lengths_.clear();
    while (references_.size() < references.size()) references_.emplace_back(options_);
    for (std::size_t r = 0; r < references.size(); ++r) {
      const auto& tokens = references_[r].tokens(references[r]);
      matcher_.add_reference(tokens);
      reference_lengths_.push_back(std::ssize(tokens));
    }
  }

  void count(std::string_view hypothesis, std::span<double> row) override {
    const auto& tokens = hypothesis_.tokens(hypothesis);
    const std::int64_t length = std::ssize(tokens);
    // If a segment has several references, BLEU uses the length of the reference whose length is nearest to the
    // hypothesis' length; of two lengths that are equally near, the shorter one.
    const auto nearer = [length](std::int64_t a, std::int64_t b) {
      const std::int64_t far_a = std::abs(length - a), far_b = std::abs(length - b);
      return far_a != far_b ? far_a < far_b : a < b;
    };
    row[0] = static_cast<double>(length);
    row[1] = static_cast<double>(*std::min_element(reference_lengths_.begin(), reference_lengths_.end(), nearer));
    std::fill(matches_.begin(), matches_.end(), 0);
    matcher_.match(tokens, matches_);
    for (std::size_t n = 0; n < orders(); ++n) {
      row[2 + n] = static_cast<double>(matches_[n]);
      row[2 + orders() + n] = static_cast<double>(std::max<std::int64_t>(0, length - static_cast<std::int64_t>(n)));
    }
  }

 private:
  std::size_t orders() const { return static_cast<std::size_t>(options_.max_order); }

  BleuOptions options_;
  Preprocessor hypothesis_;
  // One Preprocessor for each reference of a segment: a Preprocessor owns the tokens of one line only, and the tokens
  // of all references are needed at the same time.
  std::vector<Preprocessor> references_;
  std::vector<std::int64_t> reference_lengths_;
  NgramMatcher matcher_;
  std::vector<std::int64_t> matches_;
};

}  // namespace

double BleuScore::length_ratio() const {
  return reference_length ? static_cast<double>(hypothesis_length) / static_cast<double>(reference_length) : 0;
}

double smoothing_value(const BleuOptions& options) {
  if (options.smooth_method == BleuSmoothing::floor) return options.smooth_value.value_or(0.1);
  if (options.smooth_method == BleuSmoothing::add_k) return options.smooth_value.value_or(1);
  return 0;
}

BleuScore bleu_score(std::span<const double> sums, const BleuOptions& options) {
  return score_sums(sums, options, [](double count, double added) { return count + added; });
}

std::string bleu_details(const BleuScore& score) {
  std::string out;
  for (const double precision : score.precisions) out += (out.empty() ? "" : "/") + format_fixed(precision, 1);
  return out + " (BP = " + format_fixed(score.brevity_penalty, 3) +
         " ratio = " + format_fixed(score.length_ratio(), 3) + " hyp_len = " + std::to_string(score.hypothesis_length) +
         " ref_len = " + std::to_string(score.reference_length) + ")";
}

std::string BleuMetric::settings() const {
  std::string smoothing(enum_name(options_.smooth_method));
  if (options_.smooth_method == BleuSmoothing::floor || options_.smooth_method == BleuSmoothing::add_k)
    smoothing += "[" + format_fixed(smoothing_value(options_), 2) + "]";
  return std::string("case:") + (options_.lowercase ? "lc" : "mixed") +
         "|eff:" + (options_.effective_order ? "yes" : "no") + "|tok:" + std::string(enum_name(options_.tokenize)) +
         "|smooth:" + smoothing;
}

std::unique_ptr<SegmentCounter> BleuMetric::counter() const {
  return std::make_unique<BleuCounter>(options_);
}

double BleuMetric::score(std::span<const double> sums) const {
  return bleu_score(sums, options_).score;
}

ResampledScore BleuMetric::resampled_score(std::span<const float> sums) const {
  const auto add = [](float count, float added) { return count + added; };
  return {score_sums(sums, options_, add).score, false};
}

double BleuMetric::shuffled_score(std::span<const double> sums) const {
  // sacreBLEU stores count + k in a NumPy array of integers, which drops the fraction.
  const auto add = [](double count, double added) { return std::trunc(count + added); };
  return score_sums(sums, options_, add).score;
}

std::string BleuMetric::details(std::span<const double> sums) const {
  return bleu_details(bleu_score(sums, options_));
}

BleuScore corpus_bleu(std::span<const std::string> hypotheses, std::span<const std::vector<std::string>> references,
                      const BleuOptions& options) {
  if (hypotheses.empty() || references.empty()) throw Error("BLEU of nothing (give hypotheses and references)");
  for (const auto& lines : references)
    if (lines.size() != hypotheses.size())
      throw Error("BLEU of " + std::to_string(hypotheses.size()) + " hypotheses and " + std::to_string(lines.size()) +
                  " references (each hypothesis needs its reference)");
  BleuCounter counter(options);
  std::vector<double> row(BleuMetric(options).width()), sums(row.size());
  std::vector<std::string_view> segment(references.size());
  for (std::size_t i = 0; i < hypotheses.size(); ++i) {
    for (std::size_t r = 0; r < references.size(); ++r) segment[r] = references[r][i];
    counter.set_references(segment);
    counter.count(hypotheses[i], row);
    for (std::size_t k = 0; k < row.size(); ++k) sums[k] += row[k];
  }
  return bleu_score(sums, options);
}

BleuScore sentence_bleu(std::string_view hypothesis, std::span<const std::string> references,
                        const BleuOptions& options) {
  if (references.empty()) throw Error("BLEU of a sentence without a reference");
  BleuCounter counter(options);
  counter.set_references(std::vector<std::string_view>(references.begin(), references.end()));
  std::vector<double> row(BleuMetric(options).width());
  counter.count(hypothesis, row);
  return bleu_score(row, options);
}

double d2l_bleu(std::span<const std::string_view> hypothesis, std::span<const std::string_view> reference,
                int max_order) {
  if (hypothesis.empty()) return reference.empty() ? 1 : 0;
  const std::size_t orders = std::min(static_cast<std::size_t>(max_order), hypothesis.size());
  NgramMatcher matcher(static_cast<int>(orders));
  matcher.add_reference(reference);
  std::vector<std::int64_t> matches(orders);
  matcher.match(hypothesis, matches);
  const auto length = static_cast<double>(hypothesis.size());
  double score = std::exp(std::min(0.0, 1 - static_cast<double>(reference.size()) / length));
  for (std::size_t n = 1; n <= orders; ++n)
    score *= std::pow(static_cast<double>(matches[n - 1]) / (length - static_cast<double>(n) + 1),
                      std::pow(0.5, static_cast<double>(n)));
  return score;
}

double d2l_bleu(std::string_view hypothesis, std::string_view reference, int max_order) {
  MtevalTokenizer one(MtevalMode::none), other(MtevalMode::none);
  return d2l_bleu(one.tokens(hypothesis), other.tokens(reference), max_order);
}

}  // namespace heed
