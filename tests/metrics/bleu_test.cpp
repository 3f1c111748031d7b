#include "heed/metrics/bleu.h"

#include <doctest/doctest.h>

#include <cmath>

#include "heed/base/error.h"
#include "reference.h"

using namespace heed;
using Lines = std::vector<std::string>;

namespace {

/// Checks that two numbers differ by at most 1e-9 of the expected number, or by 1e-9 if that number is below 1.
void check_equal(double got, double expected) {
  CHECK(std::abs(got - expected) <= 1e-9 * std::max(1.0, std::abs(expected)));
}

}  // namespace

TEST_CASE("corpus BLEU is sacreBLEU's under every setting") {
  std::size_t results = 0;
  for (const auto& test : bleu_reference()["cases"]) {
    const auto name = test["name"].get<std::string>();
    const auto hypotheses = test["hypotheses"].get<Lines>();
    const auto references = test["references"].get<std::vector<Lines>>();
    for (const auto& expected : test["results"]) {
      const auto setting = expected["options"].dump();
      CAPTURE(name);
      CAPTURE(setting);
      const BleuScore score = corpus_bleu(hypotheses, references, options_of(expected["options"]));
      check_equal(score.score, expected["score"]);
      check_equal(score.brevity_penalty, expected["bp"]);
      REQUIRE(score.precisions.size() == expected["precisions"].size());
      for (std::size_t n = 0; n < score.precisions.size(); ++n)
        check_equal(score.precisions[n], expected["precisions"][n]);
      ++results;
    }
  }
  CHECK(results > 500);
}

TEST_CASE("sentence BLEU is sacreBLEU's under every setting") {
  for (const auto& test : bleu_reference()["cases"]) {
    const auto hypotheses = test["hypotheses"].get<Lines>();
    const auto references = test["references"].get<std::vector<Lines>>();
    for (const auto& expected : test["results"]) {
      const auto setting = expected["options"].dump();
      CAPTURE(setting);
      BleuOptions options = options_of(expected["options"]);
      options.effective_order = true;
      for (std::size_t i = 0; i < hypotheses.size(); ++i) {
        CAPTURE(hypotheses[i]);
        Lines segment;
        for (const auto& lines : references) segment.push_back(lines[i]);
        check_equal(sentence_bleu(hypotheses[i], segment, options).score, expected["sentences"][i]);
      }
    }
  }
}

TEST_CASE("a corpus of three-word lines has no four-grams: 0 at corpus level, 100 as a sentence") {
  const Lines lines = {"a b c"};
  CHECK(corpus_bleu(lines, std::vector<Lines>{lines}).score == 0);
  BleuOptions options;
  options.effective_order = true;
  CHECK(sentence_bleu(lines[0], lines, options).score == doctest::Approx(100));
}

TEST_CASE("statistics of parts add up to those of the whole") {
  const BleuMetric metric({});
  const auto counter = metric.counter();
  std::vector<double> first(metric.width()), second(metric.width());
  const std::string_view reference[] = {"the cat sat on the mat"}, other[] = {"a dog barked at me , loudly"};
  counter->set_references(reference);
  counter->count("the cat sat on a mat", first);
  counter->set_references(other);
  counter->count("dog barked at me", second);
  for (std::size_t k = 0; k < first.size(); ++k) first[k] += second[k];
  CHECK(first == std::vector<double>{10, 13, 9, 6, 4, 2, 10, 8, 6, 4});
  const Lines hypotheses = {"the cat sat on a mat", "dog barked at me"};
  const std::vector<Lines> references = {{std::string(reference[0]), std::string(other[0])}};
  CHECK(metric.score(first) == corpus_bleu(hypotheses, references).score);
}

TEST_CASE("corpora that do not fit are refused") {
  const Lines two = {"a", "b"}, one = {"a"};
  CHECK_THROWS_WITH_AS(corpus_bleu(two, std::vector<Lines>{two, one}),
                       "BLEU of 2 hypotheses and 1 references (each hypothesis needs its reference)", Error);
  CHECK_THROWS_WITH_AS(corpus_bleu({}, std::vector<Lines>{two}), "BLEU of nothing (give hypotheses and references)",
                       Error);
  CHECK_THROWS_AS(corpus_bleu(two, {}), Error);
  CHECK_THROWS_AS(sentence_bleu("a", {}, {}), Error);
}

TEST_CASE("d2l_bleu is the textbook's formula") {
  CHECK(d2l_bleu("va !", "va !", 2) == 1);
  CHECK(d2l_bleu("j'ai perdu .", "j'ai perdu .", 2) == 1);
  // 3 of 4 unigrams and 1 of 3 bigrams match.
  CHECK(d2l_bleu("il est un calme", "il est calme", 2) ==
        doctest::Approx(std::pow(3.0 / 4, 0.5) * std::pow(1.0 / 3, 0.25)).epsilon(1e-12));
  // The hypothesis is one word shorter than the reference of five words.
  CHECK(d2l_bleu("je suis chez moi", "je suis chez moi .", 2) == doctest::Approx(std::exp(1 - 5.0 / 4)).epsilon(1e-12));
  CHECK(d2l_bleu("the the the", "the cat", 1) == doctest::Approx(std::pow(1.0 / 3, 0.5)).epsilon(1e-12));
  CHECK(d2l_bleu("a b", "a b", 4) == 1);  // the hypothesis has no trigrams, so only n = 1 and 2 count
  CHECK(d2l_bleu("x", "a b", 2) == 0);
  CHECK(d2l_bleu("", "", 2) == 1);
  CHECK(d2l_bleu("", "a", 2) == 0);
  CHECK(d2l_bleu("a", "", 2) == 0);
}
