#include "heed/metrics/resampling.h"

#include <doctest/doctest.h>

#include "heed/metrics/bleu.h"
#include "heed/metrics/chrf.h"
#include "heed/metrics/numpy_random.h"
#include "heed/metrics/ter.h"
#include "reference.h"

using namespace heed;

TEST_CASE("random numbers are NumPy's") {
  for (const auto& test : score_reference()["random"]) {
    CAPTURE(test.dump());
    NumpyRandom random(test["seed"]);
    std::vector<std::uint32_t> chosen(test["chosen"].size());
    random.choose(test["size"], chosen);
    CHECK(chosen == test["chosen"].get<std::vector<std::uint32_t>>());
    NumpyBits bits(random);
    for (const int bit : test["bits"]) CHECK(bits.next() == (bit == 1));
    chosen.resize(9001);  // many numbers are rejected when the size is large
    random.choose(test["size"], chosen);
    CHECK(std::vector(chosen.end() - 9, chosen.end()) == test["later"].get<std::vector<std::uint32_t>>());
  }
}

namespace {

/// Returns random statistics of 300 segments, for two systems and the given metrics.
SegmentStatistics statistics_of(const TranslationMetrics& metrics) {
  SegmentStatistics statistics(metrics, 2);
  NumpyRandom random(5);
  std::vector<double> row(statistics.row_width());
  for (int i = 0; i < 300; ++i) {
    for (double& number : row) number = 1 + random.next32() % 9;
    statistics.append(row);
  }
  return statistics;
}

TranslationMetrics two_metrics() {
  TranslationMetrics metrics;
  metrics.push_back(std::make_unique<BleuMetric>(BleuOptions{}));
  metrics.push_back(std::make_unique<ChrfMetric>(ChrfOptions{}));
  return metrics;
}

}  // namespace

TEST_CASE("tests of significance do not depend on the number of threads") {
  const TranslationMetrics metrics = two_metrics();
  const SegmentStatistics statistics = statistics_of(metrics);
  const auto one = bootstrap_scores(statistics, 130, 12345, 1), three = bootstrap_scores(statistics, 130, 12345, 3);
  REQUIRE(one.size() == 4);
  for (std::size_t s = 0; s < one.size(); ++s) CHECK(one[s].values == three[s].values);
  CHECK_FALSE(one[0].single);
  CHECK(one[1].single);  // NumPy computes chrF's scores in float32
  const std::vector<double> scores = {50, 50, 50.5, 50.5};
  CHECK(randomization_p_values(statistics, scores, 130, 12345, 1) ==
        randomization_p_values(statistics, scores, 130, 12345, 3));
}

TEST_CASE("chrF with smoothing is a float32 where a precision or a recall is one in sacreBLEU") {
  ChrfOptions options;
  options.char_order = 2;
  options.eps_smoothing = true;
  const ChrfMetric metric(options);
  const auto single = [&](std::vector<float> sums) { return metric.resampled_score(sums).single; };
  CHECK(single({3, 3, 1, 2, 2, 0}));
  CHECK(single({3, 0, 0, 2, 0, 0}));        // the references are empty
  CHECK(single({0, 3, 0, 0, 2, 0}));        // the hypotheses are empty
  CHECK(single({1, 1, 0, 1, 0, 0}));        // no n-gram matches, but the references have none of length 2
  CHECK_FALSE(single({3, 3, 0, 2, 2, 0}));  // no n-gram matches
  CHECK_FALSE(single({0, 0, 0, 0, 0, 0}));
}

TEST_CASE("randomisation rounds fractions as NumPy's matrix products do") {
  TranslationMetrics metrics;
  metrics.push_back(std::make_unique<TerMetric>(TercomOptions{}));
  for (const auto& test : score_reference()["fractions"]) {
    CAPTURE(test.dump());
    SegmentStatistics statistics(metrics, 2);
    for (int i = 0; i < test["segments"]; ++i) {
      const double length = (20 + i * 13 % 31) / 3.0;
      statistics.append(std::vector<double>{1.0 * (i * 7 % 5), length, 1.0 * (i * 11 % 5 + (i % 37 == 0)), length});
    }
    const std::vector<double> sums = statistics.sums();
    const std::vector<double> scores = {metrics[0]->score(std::span(sums).first(2)),
                                        metrics[0]->score(std::span(sums).subspan(2))};
    CHECK(randomization_p_values(statistics, scores, test["trials"], 12345, 2)[1] == test["p"].get<double>());
  }
}

TEST_CASE("equal systems differ by chance with p = 1 / (n + 1)") {
  const ResampledScores scores{{1, 2, 3, 4}, false};
  CHECK(bootstrap_p_value(scores, scores, 0) == 1.0 / 5);
  CHECK(bootstrap_p_value(scores, ResampledScores{{2, 4, 3, 3}, false}, 0) == 2.0 / 5);
}

TEST_CASE("an interval leaves out a fortieth of the scores at each end") {
  ResampledScores scores{std::vector<double>(80), false};
  for (std::size_t i = 0; i < 80; ++i) scores.values[79 - i] = static_cast<double>(i);
  CHECK(exact_interval(scores).half_width == 0.5 * (77 - 2));
  CHECK(exact_interval(scores).mean == 39.5);
  CHECK(numpy_interval(scores).mean == 39.5);
}
