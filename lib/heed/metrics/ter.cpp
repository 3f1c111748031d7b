#include "heed/metrics/ter.h"

#include <algorithm>
#include <vector>

#include "heed/metrics/edit_rate.h"
#include "heed/metrics/ngram_matcher.h"

namespace heed {
namespace {

/// Returns the translation edit rate: 100 times the number of edits, divided by the length of the reference in words.
/// If the reference is empty, the rate is 100 if there are edits and 0 otherwise.
template <class Number>
Number edit_rate(std::span<const Number> sums) {
  if (sums[1] > 0) return 100 * (sums[0] / sums[1]);
  return sums[0] > 0 ? 100 : 0;
}

class TerCounter : public SegmentCounter {
 public:
  explicit TerCounter(const TercomOptions& options) : tokenizer_(options) {}

  void set_references(std::span<const std::string_view> references) override {
    numbers_.clear();
    references_.resize(references.size());
    for (std::size_t r = 0; r < references.size(); ++r)
      numbers_.number(tokenizer_.tokens_of_tokens(references[r]), references_[r]);
  }

  void count(std::string_view hypothesis, std::span<double> row) override {
    numbers_.number(tokenizer_.tokens(hypothesis), hypothesis_);
    std::int64_t fewest = INT64_MAX, length = 0;
    for (const auto& reference : references_) {
      fewest = std::min(fewest, edits_.count(hypothesis_, reference));
      length += std::ssize(reference);
    }
    row[0] = static_cast<double>(fewest);
    row[1] = static_cast<double>(length) / static_cast<double>(references_.size());
  }

 private:
  TercomTokenizer tokenizer_;
  TokenNumbers numbers_;
  std::vector<std::vector<std::uint32_t>> references_;
  std::vector<std::uint32_t> hypothesis_;
  TranslationEdits edits_;
};

}  // namespace

std::string TerMetric::settings() const {
  const auto yes = [](bool value) { return value ? "yes" : "no"; };
  return std::string("case:") + (options_.case_sensitive ? "mixed" : "lc") +
         "|tok:tercom|norm:" + yes(options_.normalized) + "|punct:" + yes(!options_.no_punct) +
         "|asian:" + yes(options_.asian_support);
}

std::unique_ptr<SegmentCounter> TerMetric::counter() const {
  return std::make_unique<TerCounter>(options_);
}

double TerMetric::score(std::span<const double> sums) const {
  return edit_rate(sums);
}

ResampledScore TerMetric::resampled_score(std::span<const float> sums) const {
  return {static_cast<double>(edit_rate(sums)), sums[1] > 0};
}

}  // namespace heed
