#include <cmath>
#include <memory>
#include <vector>

#include "fuzz.h"
#include "heed/base/utf8.h"
#include "heed/metrics/bleu.h"
#include "heed/metrics/chrf.h"
#include "heed/metrics/ter.h"

// Tests that the scores of any lines are finite numbers within their range, and that TER finds no edits between a line
// and itself.

namespace {

using namespace heed;

std::unique_ptr<TranslationMetric> choose_metric(fuzz::Input& input) {
  const std::size_t which = input.choose(3), flags = input.choose(256), number = input.choose(8);
  if (which == 0) {
    constexpr MtevalMode kModes[] = {MtevalMode::v13a, MtevalMode::intl, MtevalMode::character, MtevalMode::chinese,
                                     MtevalMode::none};
    constexpr BleuSmoothing kMethods[] = {BleuSmoothing::exp, BleuSmoothing::floor, BleuSmoothing::add_k,
                                          BleuSmoothing::none};
    return std::make_unique<BleuMetric>(BleuOptions{.tokenize = kModes[number % 5],
                                                    .lowercase = (flags & 1) != 0,
                                                    .smooth_method = kMethods[flags / 2 % 4],
                                                    .smooth_value = {},
                                                    .max_order = 1 + static_cast<int>(flags / 8 % 6),
                                                    .effective_order = (flags & 128) != 0});
  }
  if (which == 1)
    return std::make_unique<ChrfMetric>(ChrfOptions{.char_order = 1 + static_cast<int>(number),
                                                    .word_order = static_cast<int>(flags % 4),
                                                    .beta = 1 + static_cast<int>(flags / 4 % 3),
                                                    .lowercase = (flags & 16) != 0,
                                                    .whitespace = (flags & 32) != 0,
                                                    .eps_smoothing = (flags & 64) != 0});
  return std::make_unique<TerMetric>(TercomOptions{.normalized = (flags & 1) != 0,
                                                   .no_punct = (flags & 2) != 0,
                                                   .asian_support = (flags & 4) != 0,
                                                   .case_sensitive = (flags & 8) != 0});
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  fuzz::Input input(data, size);
  const auto metric = choose_metric(input);
  const std::size_t references = 1 + input.choose(3);
  const auto counter = metric->counter();
  std::vector<double> row(metric->width()), sums(metric->width());
  const auto check = [&](const std::vector<double>& statistics) {
    const double score = metric->score(statistics);
    fuzz::require(std::isfinite(score) && score >= 0, "a score is a number");
    fuzz::require(metric->lower_is_better() || score <= 100.0000001, "a score is at most 100");
  };
  while (!input.empty()) {
    const std::string hypothesis = replace_invalid_utf8(input.line());
    std::vector<std::string> lines;
    for (std::size_t i = 0; i < references; ++i) lines.push_back(replace_invalid_utf8(input.line()));
    counter->set_references(std::vector<std::string_view>(lines.begin(), lines.end()));
    counter->count(hypothesis, row);
    for (std::size_t i = 0; i < row.size(); ++i) {
      fuzz::require(std::isfinite(row[i]) && row[i] >= 0, "statistics are counts");
      sums[i] += row[i];
    }
    check(row);
    // sacreBLEU tokenises a normalised reference twice, so that such a reference may differ from the same line as
    // hypothesis.
    if (!metric->lower_is_better() || metric->settings().find("norm:no") == std::string::npos) continue;
    counter->set_references(std::vector<std::string_view>{hypothesis});
    counter->count(hypothesis, row);
    fuzz::require(row[0] == 0, "no edits lead from a line to itself");
  }
  check(sums);
  return 0;
}
