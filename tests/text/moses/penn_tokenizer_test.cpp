#include "heed/text/moses/penn_tokenizer.h"

#include <doctest/doctest.h>

#include <fstream>
#include <nlohmann/json.hpp>

#include "heed/text/moses/moses_detokenizer.h"
#include "heed/text/moses/punctuation.h"
#include "heed/text/steps.h"

using namespace heed;

namespace {

std::string penn(std::string_view line) {
  std::string out;
  tokenize_penn(line, NonbreakingPrefixes("en"), out);
  return out;
}

std::string back(std::string_view tokens) {
  return MosesDetokenizer("en", true, true).detokenize(tokens);
}

}  // namespace

TEST_CASE("quotes have a direction") {
  CHECK(penn("\"Yes,\" he said.") == "`` Yes , '' he said .");
  CHECK(penn("('no') \"\"") == "-LRB- ` no ' -RRB- `` ''");
  CHECK(penn("`a' ``b''") == "` a ' `` b''");
  CHECK(penn("'a' [\"b\"]") == "` a ' -LSB- `` b '' -RSB-");
}

TEST_CASE("contractions and clitics come apart") {
  CHECK(penn("I don't know, it's John's.") == "I do n't know , it 's John 's .");
  CHECK(penn("We'll CAN'T they've") == "We 'll CA N'T they 've");
  CHECK(penn("I cannot, gonna D'ye Gimme 'Tis wanna.") == "I can not , gon na D' ye Gim me ` Tis wan na .");
  CHECK(penn("cannot cannot cannot") == "can not cannot can not");
  CHECK(penn("the dogs' house") == "the dogs ' house");
}

TEST_CASE("stops, ellipses, symbols, slashes, dashes, numbers") {
  CHECK(penn("Mr. Smith... left the U.S. army.") == "Mr. Smith ... left the U.S. army .");
  CHECK(penn("He left (at 5 p.m.)") == "He left -LRB- at 5 p.m . -RRB-");
  CHECK(penn("5,300 and/or $5; 3%--x@y \u2122") == "5,300 and @/@ or $ 5 ; 3 % -- x @ y \u2122");
  CHECK(penn("really?! {a} <b>") == "really ? ! -LCB- a -RCB- < b >");
  CHECK(penn(" a\tb\x01"
             "c ") == "a bc");
}

TEST_CASE("the way back joins what was split") {
  for (const std::string_view line :
       {"\"Yes,\" he said.", "I cannot say it's and/or isn't.", "(a) [b] {c} ((d))", "I'm gonna 'go' now.", "CAN'T"})
    CHECK(back(penn(line)) == line);
  CHECK(back("`` a &apos;&apos; &quot;") == "\"a\" \"");
}

TEST_CASE("the way back is that of detokenizer.perl -penn") {
  std::ifstream in(HEED_TEST_DATA "/text/reference/penn_detokenizer.json");
  REQUIRE(in);
  const nlohmann::json cases = nlohmann::json::parse(in)["cases"];
  CHECK(cases.size() > 150);
  const MosesDetokenizer detokenizer("en", true, true);
  for (const auto& test : cases) {
    const std::string tokens = test[0];
    CAPTURE(tokens);
    CHECK(detokenizer.detokenize(tokens) == test[1].get<std::string>());
    CHECK(detokenizer.detokenize(tokens, true) == test[2].get<std::string>());
  }
}

TEST_CASE("as a step: entities on demand, punctuation keeps directed quotes, tags stay with skip_xml") {
  CHECK(TextPipeline({.penn = true}).tokenize("\"a\" & b") == "`` a '' & b");
  CHECK(TextPipeline({.penn = true, .escape = true}).tokenize("it's & b") == "it &apos;s &amp; b");
  CHECK(TextPipeline({.penn = true}).detokenize("`` a '' do n't") == "\"a\" don't");
  CHECK(TextPipeline({.penn = true, .normalize_punctuation = true}).tokenize("``a''") == "`` a ''");
  std::string line = "``a''";
  normalize_punctuation(line, "en");
  CHECK(line == " \" a \" ");
  CHECK(TextPipeline({.skip_xml = true}).tokenize("<seg id=\"1\">") == "<seg id=\"1\">");
  CHECK(TextPipeline({.skip_xml = true}).tokenize("<seg> a") == "< seg > a");
  CHECK(TextPipeline({}).tokenize("<seg>") == "< seg >");
}
