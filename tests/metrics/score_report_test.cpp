#include "heed/metrics/score_report.h"

#include <doctest/doctest.h>

#include "reference.h"

using namespace heed;
using Lines = std::vector<std::string>;

namespace {

/// Returns a BLEU score in the form in which the tool bleu reports it.
SystemScore report_of(const BleuScore& score, const BleuOptions& options, std::size_t references) {
  return {"BLEU", score.score, signature(BleuMetric(options), references), bleu_details(score), {}, {}};
}

}  // namespace

TEST_CASE("text, JSON and signature are sacreBLEU's, letter for letter") {
  std::size_t objects = 0;
  for (const auto& test : bleu_reference()["cases"]) {
    const auto hypotheses = test["hypotheses"].get<Lines>();
    const auto references = test["references"].get<std::vector<Lines>>();
    for (const auto& expected : test["results"]) {
      const auto setting = expected["options"].dump();
      CAPTURE(setting);
      const BleuOptions options = options_of(expected["options"]);
      const SystemScore score = report_of(corpus_bleu(hypotheses, references, options), options, references.size());
      CHECK(score_text(score, 2) == with_our_version(expected["text"]));
      if (!expected.contains("json")) continue;
      for (const auto& [width, text] : expected["json"].items()) {
        CHECK(score_json(score, std::stoi(width)) == with_our_version(text));
        ++objects;
      }
      for (const auto& [width, text] : expected["score_only"].items())
        CHECK(score_number(score, std::stoi(width)) == text.get<std::string>());
    }
  }
  CHECK(objects > 100);
}

TEST_CASE("the signature's version names the program that counted") {
  CHECK(signature(BleuMetric({}), 2).starts_with("nrefs:2|case:mixed|eff:no|tok:13a|smooth:exp|version:heed."));
}

TEST_CASE("several systems stand in sacreBLEU's table") {
  for (const auto& test : bleu_reference()["tables"]) {
    const auto references = test["references"].get<std::vector<Lines>>();
    const int width = test["width"];
    std::vector<SystemReport> systems;
    for (std::size_t i = 0; i < test["names"].size(); ++i)
      systems.push_back(
          {test["names"][i], {report_of(corpus_bleu(test["hypotheses"][i].get<Lines>(), references), {}, 1)}});
    if (test["format"] == "json")
      CHECK(systems_json(systems, width) == test["output"].get<std::string>());
    else
      CHECK(systems_table(systems, width) == with_our_version(test["output"]));
  }
}

TEST_CASE("JSON on one line has the same fields") {
  const Lines lines = {"the cat sat on the mat"};
  const SystemScore score = report_of(corpus_bleu(lines, std::vector<Lines>{lines}), {}, 1);
  const std::string line = score_json(score, 1, -1);
  CHECK(line.find('\n') == std::string::npos);
  CHECK(nlohmann::ordered_json::parse(line) == nlohmann::ordered_json::parse(score_json(score, 1)));
}

TEST_CASE("numbers are written as Python writes them") {
  CHECK(json_number(0.0) == "0.0");
  CHECK(json_number(41.0) == "41.0");
  CHECK(json_number(0.1) == "0.1");
  CHECK(json_number(0.0001) == "0.0001");
  CHECK(json_number(0.00001) == "1e-05");
  CHECK(json_number(1e15) == "1000000000000000.0");
  CHECK(json_number(1e16) == "1e+16");
  CHECK(json_number(83.192985052322) == "83.192985052322");
  CHECK(json_number(0.1F) == "0.1");
  CHECK(json_number(static_cast<double>(0.1F)) == "0.10000000149011612");
  CHECK(format_fixed(0.5, 0) == "0");
  CHECK(format_fixed(2.675, 2) == "2.67");
  CHECK(format_fixed(0.25, 1) == "0.2");
}

TEST_CASE("TSV has a line for each system and metric, and fields that cannot break it") {
  SystemReport first{"a\tb\\", {{"BLEU", 41.25, "nrefs:1", "", Interval{41.5, 0.75}, {}}}};
  SystemReport second{"c", {{"BLEU", 40, "nrefs:1", "", Interval{40, 1}, 0.025}}};
  CHECK(systems_tsv(std::vector{first, second}, 1) ==
        "system\tmetric\tscore\tconfidence_mean\tconfidence_interval\tp_value\tsignature\n"
        "a\\tb\\\\\tBLEU\t41.2\t41.5\t0.8\t\tnrefs:1\n"
        "c\tBLEU\t40.0\t40.0\t1.0\t0.0250\tnrefs:1\n");
}

TEST_CASE("JUnit has a case for each system and metric and says which failed") {
  const SystemReport system{"a<b", {{"BLEU", 41, "s", "", {}, {}}, {"TER", 50, "s", "", {}, {}}}};
  const std::vector<ScoreFailure> failures = {{"a<b", "BLEU", "too \"low\""}, {"a<b", "BLEU", "worse"}};
  CHECK(systems_junit(std::vector{system}, failures, 1) ==
        "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuite name=\"bleu\" tests=\"2\" failures=\"1\">\n"
        "  <testcase classname=\"a&lt;b\" name=\"BLEU\">\n    <failure message=\"too &quot;low&quot;; worse\"/>\n"
        "    <system-out>BLEU|s = 41.0</system-out>\n  </testcase>\n"
        "  <testcase classname=\"a&lt;b\" name=\"TER\">\n    <system-out>TER|s = 50.0</system-out>\n  </testcase>\n"
        "</testsuite>\n");
}
