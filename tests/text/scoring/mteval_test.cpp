#include "heed/text/scoring/mteval.h"

#include <doctest/doctest.h>

#include <fstream>
#include <nlohmann/json.hpp>
#include <string>

#include "heed/text/steps.h"
#include "heed/text/strings/unicode.h"

using namespace heed;

namespace {

const nlohmann::json& mteval_reference() {
  static const nlohmann::json data = [] {
    std::ifstream in(HEED_TEST_DATA "/text/reference/mteval.json");
    REQUIRE(in);
    return nlohmann::json::parse(in);
  }();
  return data;
}

std::string line_of(MtevalMode mode, const std::string& text) {
  return MtevalTokenizer(mode).line(text);
}

std::vector<std::string> tokens_of(MtevalMode mode, const std::string& text) {
  MtevalTokenizer tokenizer(mode);
  const auto& tokens = tokenizer.tokens(text);
  return {tokens.begin(), tokens.end()};
}

}  // namespace

TEST_CASE("13a, intl and char give sacreBLEU's lines") {
  const auto& data = mteval_reference();
  CHECK(data["cases"].size() > 400);
  for (const auto& test : data["cases"]) {
    const std::string input = test["input"];
    CAPTURE(input);
    CHECK(line_of(MtevalMode::v13a, input) == test["13a"].get<std::string>());
    CHECK(line_of(MtevalMode::intl, input) == test["intl"].get<std::string>());
    CHECK(line_of(MtevalMode::character, input) == test["char"].get<std::string>());
    CHECK(line_of(MtevalMode::chinese, input) == test["zh"].get<std::string>());
    CHECK(line_of(MtevalMode::none, input) == input);
  }
}

TEST_CASE("tokens are what white space separates in the line") {
  for (const auto& test : mteval_reference()["cases"]) {
    const std::string input = test["input"];
    CAPTURE(input);
    for (const auto mode : {MtevalMode::v13a, MtevalMode::intl, MtevalMode::character, MtevalMode::chinese})
      CHECK(tokens_of(mode, input) == tokens_of(MtevalMode::none, line_of(mode, input)));
  }
  CHECK(tokens_of(MtevalMode::none, "\ta\u00a0b \u3000 c ") == std::vector<std::string>{"a", "b", "c"});
  CHECK(tokens_of(MtevalMode::none, "").empty());
}

TEST_CASE("the text steps 13a and intl give the tokens that sacreBLEU scores, whatever blanks end a line") {
  for (const auto& [mode, name] : {std::pair{TokenMode::mteval_13a, "13a"}, {TokenMode::intl, "intl"}}) {
    const TextPipeline pipeline({.mode = mode});
    for (const auto& test : mteval_reference()["cases"]) {
      const std::string input = test["input"];
      if (strip_trailing_space(input) != input) continue;
      CAPTURE(input);
      for (const char* blanks : {"", " ", "  ", "\t", "\u00a0 \u3000"})
        CHECK(pipeline.tokenize(input + blanks) == test[name].get<std::string>());
    }
    CHECK(pipeline.tokenize(" in  1990. ") == (mode == TokenMode::intl ? "in 1990." : "in 1990 ."));
    CHECK(pipeline.tokenize(" . 5") == ". 5");
  }
}

TEST_CASE("one tokeniser serves many lines") {
  MtevalTokenizer tokenizer(MtevalMode::v13a);
  CHECK(tokenizer.tokens("&lt;a&gt;").size() == 3);
  CHECK(tokenizer.tokens("").empty());
  CHECK(tokenizer.tokens("a b").size() == 2);
}

TEST_CASE("bytes that are not UTF-8 are letters") {
  CHECK(tokens_of(MtevalMode::v13a, "a\xff.b\xc2") == std::vector<std::string>{"a\xff", ".", "b\xc2"});
  CHECK(tokens_of(MtevalMode::intl, "a\xff.b\xe2\x80") == std::vector<std::string>{"a\xff", ".", "b\xe2\x80"});
  CHECK(tokens_of(MtevalMode::character, "a\xff") == std::vector<std::string>{"a", "\xff"});
}

TEST_CASE("strip_trailing_space is Python's rstrip") {
  CHECK(strip_trailing_space("a \t\u00a0\u3000\u2028\x1f") == "a");
  CHECK(strip_trailing_space(" \u0085") == "");
  CHECK(strip_trailing_space("a\u200b") == "a\u200b");
  CHECK(strip_trailing_space("\u00e0") == "\u00e0");
}

TEST_CASE("to_lower is Python's lower") {
  CHECK(mteval_reference()["lower"].size() > 100);
  for (const auto& test : mteval_reference()["lower"]) {
    const std::string input = test["input"];
    CAPTURE(input);
    CHECK(to_lower(input) == test["output"].get<std::string>());
  }
}
