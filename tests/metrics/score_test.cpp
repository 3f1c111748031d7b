#include <doctest/doctest.h>

#include <cmath>

#include "heed/metrics/chrf.h"
#include "heed/metrics/ter.h"
#include "reference.h"

using namespace heed;
using Lines = std::vector<std::string>;

namespace {

std::unique_ptr<TranslationMetric> metric_of(const nlohmann::json& test) {
  const auto& given = test["options"];
  if (test["metric"] == "chrf")
    return std::make_unique<ChrfMetric>(ChrfOptions{.char_order = given.value("char_order", 6),
                                                    .word_order = given.value("word_order", 0),
                                                    .beta = given.value("beta", 2),
                                                    .lowercase = given["lowercase"],
                                                    .whitespace = given["whitespace"],
                                                    .eps_smoothing = given["eps_smoothing"]});
  return std::make_unique<TerMetric>(TercomOptions{.normalized = given["normalized"],
                                                   .no_punct = given["no_punct"],
                                                   .asian_support = given["asian_support"],
                                                   .case_sensitive = given["case_sensitive"]});
}

const nlohmann::json& corpus_of(const nlohmann::json& test) {
  for (const auto& corpus : score_reference()["corpora"])
    if (corpus["name"] == test["corpus"]) return corpus;
  FAIL("no such corpus");
  return test;
}

/// Checks that two numbers differ by no more than the results of two mathematics libraries may differ.
void check_last_digits(double got, double expected) {
  CHECK(std::abs(got - expected) <= 1e-12 * std::max(1.0, std::abs(expected)));
}

}  // namespace

TEST_CASE("chrF and TER are sacreBLEU's under every setting, for corpora and sentences") {
  std::size_t sentences = 0;
  for (const auto& test : score_reference()["cases"]) {
    const auto corpus_name = test["corpus"].get<std::string>();
    const auto setting = test["options"].dump();
    CAPTURE(corpus_name);
    CAPTURE(setting);
    const auto& corpus = corpus_of(test);
    const auto references = corpus["references"].get<std::vector<Lines>>();
    const auto metric = metric_of(test);
    CHECK(metric->name() == test["name"].get<std::string>());
    CHECK(signature(*metric, references.size()) == with_our_version(test["signature"]));
    const auto counter = metric->counter();
    for (std::size_t s = 0; s < corpus["systems"].size(); ++s) {
      const auto hypotheses = corpus["systems"][s].get<Lines>();
      std::vector<double> sums(metric->width()), row(metric->width());
      for (std::size_t i = 0; i < hypotheses.size(); ++i) {
        CAPTURE(hypotheses[i]);
        std::vector<std::string_view> segment;
        for (const auto& lines : references) segment.emplace_back(lines[i]);
        counter->set_references(segment);
        counter->count(hypotheses[i], row);
        check_last_digits(metric->score(row), test["results"][s]["sentences"][i]);
        for (std::size_t k = 0; k < row.size(); ++k) sums[k] += row[k];
        ++sentences;
      }
      check_last_digits(metric->score(sums), test["results"][s]["score"]);
    }
  }
  CHECK(sentences > 4000);
}

TEST_CASE("an ill-formed byte is a character of its own for chrF") {
  const ChrfMetric metric({.char_order = 1});
  const auto counter = metric.counter();
  std::vector<double> row(3);
  const std::string_view reference[] = {"a\xff\xfe"};
  counter->set_references(reference);
  counter->count("a\xfe\xfe", row);
  CHECK(row == std::vector<double>{3, 3, 2});
}
