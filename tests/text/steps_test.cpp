#include "heed/text/steps.h"

#include <doctest/doctest.h>

#include "heed/config/fields.h"

using namespace heed;

namespace {

std::string round_trip(const TextSteps& steps, std::string_view line) {
  const TextPipeline pipeline(steps);
  return pipeline.detokenize(pipeline.tokenize(line));
}

}  // namespace

TEST_CASE("each mode splits in its own way") {
  const std::string line = "It's  3,4% - isn't it?";
  CHECK(TextPipeline({}).tokenize(line) == "It 's 3,4 % - isn 't it ?");
  CHECK(TextPipeline({.mode = TokenMode::mteval_13a}).tokenize(line) == "It's 3,4 % - isn't it ?");
  CHECK(TextPipeline({.mode = TokenMode::intl}).tokenize("a\u2013b") == "a \u2013 b");
  CHECK(TextPipeline({.mode = TokenMode::character}).tokenize("a bc") == "a   b c");
  CHECK(TextPipeline({.mode = TokenMode::words}).tokenize(" a\tb  c. ") == "a b c.");
  CHECK(TextPipeline({.mode = TokenMode::words}).tokenize("a\u00A0b") == "a b");
  CHECK(TextPipeline({.mode = TokenMode::ascii_words}).tokenize(" a\u00A0b\tb\r c. ") == "a\u00A0b b c.");
  CHECK(TextPipeline({.mode = TokenMode::none}).tokenize(" a\tb  c. ") == " a\tb  c. ");
}

TEST_CASE("detokenising undoes each mode") {
  CHECK(round_trip({}, "It's \"fine\", isn't it? (3,4%)") == "It's \"fine\", isn't it? (3,4%)");
  CHECK(round_trip({.escape = true}, "a & b | c's [d]") == "a & b | c's [d]");
  CHECK(round_trip({.language = "fr"}, "J'ai vu l'ami.") == "J'ai vu l'ami.");
  CHECK(round_trip({.mode = TokenMode::mteval_13a}, "Hello, world!") == "Hello, world!");
  CHECK(round_trip({.mode = TokenMode::character}, " a  bc \u00E9 ") == " a  bc \u00E9 ");
  CHECK(round_trip({.mode = TokenMode::words}, "a b.") == "a b.");
  CHECK(round_trip({.mode = TokenMode::ascii_words}, "a b.") == "a b.");
  // Brackets have the names that they have in trees, from which such a model has learnt.
  CHECK(TextPipeline({.mode = TokenMode::ascii_words}).tokenize("a (b)") == "a -LRB-b-RRB-");
  CHECK(round_trip({.mode = TokenMode::none}, " a\tb ") == " a\tb ");
}

TEST_CASE("characters join also where a model has left out the spaces' spaces") {
  CHECK(TextPipeline({.mode = TokenMode::character}).detokenize("a b  c") == "ab c");
}

TEST_CASE("Moses lower-cases after tokenising, as its abbreviations need the case") {
  CHECK(TextPipeline({.lowercase = true}).tokenize("Mr. Smith Came. \u039F\u03A3") == "mr. smith came . \u03BF\u03C3");
  CHECK(TextPipeline({.mode = TokenMode::words, .lowercase = true}).tokenize("\u039F\u03A3") == "\u03BF\u03C2");
}

TEST_CASE("normalisation comes first") {
  CHECK(TextPipeline({.normalize = NormalForm::nfc}).tokenize("e\u0301") == "\u00E9");
  CHECK(TextPipeline({.normalize = NormalForm::nfkc}).tokenize("\uFB01n\u2026") == "fin ...");
  CHECK(TextPipeline({.normalize_punctuation = true}).tokenize("don\u2019t\u2014") == "don 't -");
  CHECK(TextPipeline({.replace_unicode_punctuation = true, .remove_nonprinting = true}).tokenize("a\uFF01\u200Bb") ==
        "a ! b");
}

TEST_CASE("control characters and line separators are text") {
  CHECK(TextPipeline({.mode = TokenMode::none}).tokenize("a\u2028b\rc") == "a\u2028b\rc");
  CHECK(TextPipeline({}).tokenize("a\u2028b\rc\x0B"
                                  "d") == "a b c d");
}

TEST_CASE("the first letter upper-case on demand") {
  CHECK(TextPipeline({}).detokenize("it 's fine .", {.uppercase_first = true}) == "It's fine.");
  const auto upper = [](const TextSteps& steps, std::string_view tokens) {
    return TextPipeline(steps).detokenize(tokens, {.uppercase_first = true});
  };
  for (const TokenMode mode : {TokenMode::mteval_13a, TokenMode::intl, TokenMode::words, TokenMode::ascii_words,
                               TokenMode::none, TokenMode::leaves, TokenMode::labels})
    CHECK(upper({.mode = mode}, "\" \u00E9t\u00E9 a") ==
          (mode == TokenMode::mteval_13a || mode == TokenMode::intl ? "\"\u00C9t\u00E9 a" : "\" \u00C9t\u00E9 a"));
  CHECK(upper({.mode = TokenMode::character}, "a   b") == "A b");
  CHECK(upper({.mode = TokenMode::none, .escape = true}, " &quot;a") == " \"A");
  CHECK(upper({.mode = TokenMode::none}, "1 a") == "1 a");
  CHECK(upper({.mode = TokenMode::words}, "") == "");
}

TEST_CASE("the steps list their fields once") {
  TextSteps steps;
  const auto fields = FieldList::of(steps);
  const std::vector<std::string> mode = {"13a"}, patterns = {"a+", "b"};
  REQUIRE(fields.find("mode") != nullptr);
  fields.find("mode")->set_text(mode);
  fields.find("protect")->set_text(patterns);
  CHECK(steps.mode == TokenMode::mteval_13a);
  CHECK(steps.protect == patterns);
}
