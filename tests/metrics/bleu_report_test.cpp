#include "heed/metrics/bleu_report.h"

#include <doctest/doctest.h>

#include "reference.h"

using namespace heed;
using Lines = std::vector<std::string>;

TEST_CASE("text, JSON and signature are sacreBLEU's, letter for letter") {
  std::size_t objects = 0;
  for (const auto& test : bleu_reference()["cases"]) {
    const auto hypotheses = test["hypotheses"].get<Lines>();
    const auto references = test["references"].get<std::vector<Lines>>();
    for (const auto& expected : test["results"]) {
      const auto setting = expected["options"].dump();
      CAPTURE(setting);
      const BleuOptions options = options_of(expected["options"]);
      const BleuScore score = corpus_bleu(hypotheses, references, options);
      const std::string signature = bleu_signature(options, references.size());
      CHECK(bleu_text(score, signature, 2) == with_our_version(expected["text"]));
      if (!expected.contains("json")) continue;
      for (const auto& [width, text] : expected["json"].items()) {
        CHECK(bleu_json(score, signature, std::stoi(width)) == with_our_version(text));
        ++objects;
      }
      for (const auto& [width, text] : expected["score_only"].items())
        CHECK(format_fixed(score.score, std::stoi(width)) == text.get<std::string>());
    }
  }
  CHECK(objects > 100);
}

TEST_CASE("the signature's version names the program that counted") {
  CHECK(bleu_signature({}, 2).starts_with("nrefs:2|case:mixed|eff:no|tok:13a|smooth:exp|version:heed."));
}

TEST_CASE("several systems stand in sacreBLEU's table") {
  for (const auto& test : bleu_reference()["tables"]) {
    const auto references = test["references"].get<std::vector<Lines>>();
    const int width = test["width"];
    std::vector<NamedBleu> systems;
    for (std::size_t i = 0; i < test["names"].size(); ++i)
      systems.push_back({test["names"][i], corpus_bleu(test["hypotheses"][i].get<Lines>(), references).score});
    if (test["format"] == "json")
      CHECK(bleu_table_json(systems, width) + "\n" == test["output"].get<std::string>());
    else
      CHECK(bleu_table(systems, bleu_signature({}, 1), width) == with_our_version(test["output"]));
  }
}

TEST_CASE("JSON on one line has the same fields") {
  const Lines lines = {"the cat sat on the mat"};
  const BleuScore score = corpus_bleu(lines, std::vector<Lines>{lines});
  const std::string signature = bleu_signature({}, 1), line = bleu_json(score, signature, 1, -1);
  CHECK(line.find('\n') == std::string::npos);
  CHECK(nlohmann::ordered_json::parse(line) == nlohmann::ordered_json::parse(bleu_json(score, signature, 1)));
}

TEST_CASE("numbers are written as Python writes them") {
  CHECK(json_number(0) == "0.0");
  CHECK(json_number(41) == "41.0");
  CHECK(json_number(0.1) == "0.1");
  CHECK(json_number(0.0001) == "0.0001");
  CHECK(json_number(0.00001) == "1e-05");
  CHECK(json_number(1e15) == "1000000000000000.0");
  CHECK(json_number(1e16) == "1e+16");
  CHECK(json_number(83.192985052322) == "83.192985052322");
  CHECK(format_fixed(0.5, 0) == "0");
  CHECK(format_fixed(2.675, 2) == "2.67");
  CHECK(format_fixed(0.25, 1) == "0.2");
}
