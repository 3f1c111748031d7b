#include "heed/metrics/bleu.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>

#include "heed/base/error.h"
#include "heed/metrics/ngram_matcher.h"
#include "heed/text/unicode.h"

namespace heed {
namespace {

/// sacreBLEU's logarithm of zero: far below everything, yet finite.
double floored_log(double value) {
  return value == 0 ? -9999999999.0 : std::log(value);
}

/// One line's way to tokens, with the memory its tokens live in.
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

}  // namespace

BleuStatistics::BleuStatistics(int max_order)
    : matches(static_cast<std::size_t>(max_order)), totals(static_cast<std::size_t>(max_order)) {}

BleuStatistics& BleuStatistics::operator+=(const BleuStatistics& other) {
  hypothesis_length += other.hypothesis_length;
  reference_length += other.reference_length;
  for (std::size_t n = 0; n < matches.size(); ++n) {
    matches[n] += other.matches.at(n);
    totals[n] += other.totals.at(n);
  }
  return *this;
}

double BleuScore::length_ratio() const {
  return reference_length ? static_cast<double>(hypothesis_length) / static_cast<double>(reference_length) : 0;
}

double smoothing_value(const BleuOptions& options) {
  if (options.smooth_method == BleuSmoothing::floor) return options.smooth_value.value_or(0.1);
  if (options.smooth_method == BleuSmoothing::add_k) return options.smooth_value.value_or(1);
  return 0;
}

BleuScore bleu_score(const BleuStatistics& statistics, const BleuOptions& options) {
  BleuScore out;
  out.precisions.resize(statistics.matches.size());
  out.hypothesis_length = statistics.hypothesis_length;
  out.reference_length = statistics.reference_length;
  if (out.hypothesis_length < out.reference_length)
    out.brevity_penalty =
        out.hypothesis_length > 0
            ? std::exp(1 - static_cast<double>(out.reference_length) / static_cast<double>(out.hypothesis_length))
            : 0;
  if (std::all_of(statistics.matches.begin(), statistics.matches.end(), [](auto count) { return count == 0; }))
    return out;

  const double value = smoothing_value(options);
  double halved = 1;
  std::size_t order = out.precisions.size();
  for (std::size_t n = 0; n < out.precisions.size(); ++n) {
    const double added = options.smooth_method == BleuSmoothing::add_k && n > 0 ? value : 0;
    const double matches = static_cast<double>(statistics.matches[n]) + added;
    const double total = static_cast<double>(statistics.totals[n]) + added;
    if (total == 0) break;
    if (options.effective_order) order = n + 1;
    if (matches != 0) {
      out.precisions[n] = 100 * matches / total;
    } else if (options.smooth_method == BleuSmoothing::exp) {
      halved *= 2;
      out.precisions[n] = 100 / (halved * total);
    } else if (options.smooth_method == BleuSmoothing::floor) {
      out.precisions[n] = 100 * value / total;
    }
  }
  double log_sum = 0;
  for (std::size_t n = 0; n < order; ++n) log_sum += floored_log(out.precisions[n]);
  out.score = out.brevity_penalty * std::exp(log_sum / static_cast<double>(order));
  return out;
}

struct BleuCounter::State {
  explicit State(const BleuOptions& o) : options(o), hypothesis(o), matcher(o.max_order) {}

  BleuOptions options;
  Preprocessor hypothesis;
  std::vector<Preprocessor> references;  // one each: the tokens of all live at the same time
  std::vector<std::int64_t> reference_lengths;
  NgramMatcher matcher;
};

BleuCounter::BleuCounter(const BleuOptions& options) : state_(std::make_unique<State>(options)) {}
BleuCounter::~BleuCounter() = default;
BleuCounter::BleuCounter(BleuCounter&&) noexcept = default;
BleuCounter& BleuCounter::operator=(BleuCounter&&) noexcept = default;

void BleuCounter::set_references(std::span<const std::string_view> references) {
  State& s = *state_;
  s.matcher.clear();
  s.reference_lengths.clear();
  while (s.references.size() < references.size()) s.references.emplace_back(s.options);
  for (std::size_t r = 0; r < references.size(); ++r) {
    const auto& tokens = s.references[r].tokens(references[r]);
    s.matcher.add_reference(tokens);
    s.reference_lengths.push_back(std::ssize(tokens));
  }
}

void BleuCounter::add(std::string_view hypothesis, BleuStatistics& sum) {
  State& s = *state_;
  const auto& tokens = s.hypothesis.tokens(hypothesis);
  const std::int64_t length = std::ssize(tokens);
  // The nearest length, the shorter of two equally near.
  const auto nearer = [length](std::int64_t a, std::int64_t b) {
    const std::int64_t far_a = std::abs(length - a), far_b = std::abs(length - b);
    return far_a != far_b ? far_a < far_b : a < b;
  };
  sum.hypothesis_length += length;
  sum.reference_length += *std::min_element(s.reference_lengths.begin(), s.reference_lengths.end(), nearer);
  for (std::size_t n = 0; n < sum.totals.size(); ++n)
    sum.totals[n] += std::max<std::int64_t>(0, length - static_cast<std::int64_t>(n));
  s.matcher.match(tokens, sum.matches);
}

BleuScore corpus_bleu(std::span<const std::string> hypotheses, std::span<const std::vector<std::string>> references,
                      const BleuOptions& options) {
  if (hypotheses.empty() || references.empty()) throw Error("BLEU of nothing (give hypotheses and references)");
  for (const auto& lines : references)
    if (lines.size() != hypotheses.size())
      throw Error("BLEU of " + std::to_string(hypotheses.size()) + " hypotheses and " + std::to_string(lines.size()) +
                  " references (each hypothesis needs its reference)");
  BleuCounter counter(options);
  BleuStatistics sum(options.max_order);
  std::vector<std::string_view> segment(references.size());
  for (std::size_t i = 0; i < hypotheses.size(); ++i) {
    for (std::size_t r = 0; r < references.size(); ++r) segment[r] = references[r][i];
    counter.set_references(segment);
    counter.add(hypotheses[i], sum);
  }
  return bleu_score(sum, options);
}

BleuScore sentence_bleu(std::string_view hypothesis, std::span<const std::string> references,
                        const BleuOptions& options) {
  if (references.empty()) throw Error("BLEU of a sentence without a reference");
  BleuCounter counter(options);
  counter.set_references(std::vector<std::string_view>(references.begin(), references.end()));
  BleuStatistics sum(options.max_order);
  counter.add(hypothesis, sum);
  return bleu_score(sum, options);
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
