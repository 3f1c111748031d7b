#include "heed/text/moses/moses_tokenizer.h"

#include <doctest/doctest.h>

#include "heed/base/error.h"

using namespace heed;

// The expected tokens were derived from the regular expressions of Moses' tokenizer.perl; scripts/moses-oracle compares
// the tokeniser with the output of the script itself.

namespace {

std::string tokens(const MosesTokenizer::Options& options, std::string_view line) {
  std::string out;
  MosesTokenizer(options).tokenize(line, out);
  return out;
}

std::string english(std::string_view line) {
  return tokens({.language = "en", .escape = false}, line);
}
std::string in(const std::string& language, std::string_view line) {
  return tokens({.language = language, .escape = false}, line);
}

}  // namespace

TEST_CASE("white space collapses, control characters vanish and join their neighbours") {
  CHECK(english("  a \t b\u00A0\u3000c\u2028d ") == "a b c d");
  CHECK(english("a\x01\x1F"
                "b") == "ab");
  CHECK(english("a \x02 b") == "a b");
  CHECK(english("\x02") == "");
}

TEST_CASE("a line of white space stays as it is") {
  CHECK(english("") == "");
  CHECK(english(" \t\u00A0 ") == " \t\u00A0 ");
}

TEST_CASE("symbols stand apart, also those that only look like letters to no one") {
  CHECK(english("(a)b%c/d") == "( a ) b % c / d");
  CHECK(english("x\u200By\u0301z") == "x \u200B y \u0301 z");
  CHECK(english("\u00BD\u20AC") == "\u00BD \u20AC");
  CHECK(english("a-b c`d e_f") == "a-b c`d e _ f");
  CHECK(english("\x7F") == "\x7F");
}

TEST_CASE("invalid bytes are symbols and survive") {
  CHECK(english("a\xFF"
                "b\xE2\x82") == "a \xFF b \xE2\x82");
}

TEST_CASE("commas stand apart except within numbers") {
  CHECK(english("a,b , c,") == "a , b , c ,");
  CHECK(english("5,300 5,a a,5 5,") == "5,300 5 , a a , 5 5 ,");
  CHECK(english(",5") == ",5");
  CHECK(english("a,,5") == "a , ,5");
  CHECK(english("5,,6") == "5 , , 6");
}

TEST_CASE("English contractions go right") {
  CHECK(english("I'm the 1990's dogs' 'x'") == "I 'm the 1990 's dogs ' ' x'");
  CHECK(english("he said 'x' now") == "he said ' x ' now");
  CHECK(english("'tis") == "'tis");
  CHECK(english("5'6 5'a") == "5 ' 6 5'a");
}

TEST_CASE("a match takes the character behind it, so that the next apostrophe is left alone") {
  CHECK(english("a'b'c") == "a 'b'c");
  CHECK(english("a'b'c'd") == "a 'b'c 'd");
  CHECK(english("-''''''-") == "- ' '' ' ''-");
}

TEST_CASE("French contractions go left, Somali keeps them, German splits every apostrophe") {
  CHECK(in("fr", "l'ami d'y a'b'c 5'a a' b") == "l' ami d' y a' b'c 5 ' a a ' b");
  CHECK(in("so", "a'b 5'a") == "a'b 5 ' a");
  CHECK(in("de", "geht's 'x'") == "geht ' s ' x '");
}

TEST_CASE("full stops: abbreviations, numbers, a small letter next, the line's end") {
  CHECK(english("Mr. Smith met Dr. Who. They left.") == "Mr. Smith met Dr. Who . They left .");
  CHECK(english("No. 5 No. Yes") == "No. 5 No . Yes");
  CHECK(english("end. next End. Next") == "end. next End . Next");
  CHECK(english("the U.S. Army in the U.S.") == "the U.S. Army in the U.S .");
  CHECK(english("at 5.30. Then") == "at 5.30 . Then");
  CHECK(english("say 'yes.'") == "say ' yes . ' ");
  CHECK(in("de", "am 3. Mai, bzw. Juni. Nun") == "am 3. Mai , bzw. Juni . Nun");
  CHECK(in("fr", "Voir chap. Un et M. Dupont. Oui") == "Voir chap. Un et M. Dupont . Oui");
}

TEST_CASE("several full stops stay together") {
  CHECK(english("well...no.. yes ..") == "well ... no .. yes ..");
  CHECK(english("..a...") == ".. a ...");
  CHECK(english("literal DOTMULTI here") == "literal . here");
}

TEST_CASE("a million full stops take no quadratic time") {
  const std::string dots(1000000, '.');
  CHECK(english(dots + "a") == dots + " a");
}

TEST_CASE("aggressive hyphens") {
  const MosesTokenizer::Options options{.aggressive_hyphens = true, .escape = false};
  CHECK(tokens(options, "a-b-c -d e- f--g \u00E9-1") == "a @-@ b @-@ c -d e- f--g \u00E9 @-@ 1");
}

TEST_CASE("escapes") {
  CHECK(tokens({}, "&|<>'\"[]") == "&amp; &#124; &lt; &gt; &apos; &quot; &#91; &#93;");
}

TEST_CASE("Finnish and Swedish colons, Tetun apostrophes, the Catalan middle dot") {
  CHECK(in("sv", "USA:s S:T a:") == "USA:s S : T a :");
  CHECK(in("fi", "EU:ssa EU: b") == "EU:ssa EU : b");
  CHECK(in("en", "EU:ssa") == "EU : ssa");
  CHECK(in("tdt", "ha'u ha'U") == "ha'u ha ' U");
  CHECK(in("ca", "il\u00B7lusi\u00F3 a\u00B7B l'a") == "il\u00B7lusi\u00F3 a\u00B7B l' a");
}

TEST_CASE("protected patterns stay whole") {
  MosesTokenizer::Options options{.escape = false, .protect = {R"(https?://[^\s]+)", R"(\d+/\d+)"}};
  CHECK(tokens(options, "see http://a.b/c?d, 3/4.") == "see http://a.b/c?d, 3/4 .");
  CHECK(tokens({.escape = true, .protect = {"<[^>]*>"}}, "a<b c>d") == "a &lt;b c&gt; d");
  CHECK(tokens({.escape = false, .protect = {"x*"}}, "a-b %xx%") == "a-b % xx %");
}

TEST_CASE("protected texts that occur in the placeholders of other protected texts stay whole") {
  const MosesTokenizer::Options numbers{.escape = false, .protect = {R"(\d+)"}};
  CHECK(tokens(numbers, "10 or 0, 1") == "10 or 0 , 1");
  CHECK(tokens({.escape = false, .protect = {"[A-Z]"}}, "ISO-T.") == "I S O - T .");
  CHECK(tokens({.escape = false, .protect = {"THIS\\w*"}}, "THISISPROTECTED001 THIS") == "THISISPROTECTED001 THIS");
  // Each S was also replaced in all placeholders, so that the line doubled 100 times.
  std::string spaced;
  for (int i = 0; i < 100; ++i) spaced += i == 0 ? "S" : " S";
  CHECK(tokens({.escape = false, .protect = {"S"}}, std::string(100, 'S')) == spaced);
  // The placeholders of more than a thousand texts have different lengths.
  std::string many;
  for (int i = 1000; i < 2100; ++i) many += "<" + std::to_string(i) + ">" + (i == 2099 ? "" : " ");
  CHECK(tokens({.escape = false, .protect = {"<[0-9]+>"}}, many) == many);
}

TEST_CASE("the text that every match of a pattern holds") {
  CHECK(required_literal(R"([\w\-\_\.]+\@([\w\-\_]+\.)+[a-zA-Z]{2,})") == "@");
  CHECK(required_literal(R"(http[s]?:\/\/[^:\/\s]+(\/\w+)*\/[\w\-\.]*(\/)?)") == "http");
  CHECK(required_literal(R"(<\/?\S+\/?>)") == "<");
  CHECK(required_literal("ab?cd+e\u00E9*f") == "cd");
  CHECK(required_literal("a|bc") == "");
  CHECK(required_literal("(a|b)cd[x|y]") == "cd");
  CHECK(required_literal("(?i)abc") == "");
  CHECK(required_literal(R"(\x41bc)") == "");
  CHECK(required_literal(R"(\p{Lu}x{2}yz{0,1})") == "y");
  CHECK(required_literal(R"(\d+)") == "");
  CHECK(required_literal("") == "");
}

TEST_CASE("a protected pattern that would take hours on a line is an error that names it") {
  CHECK_THROWS_WITH_AS(
      tokens({.protect = {R"([\w.]+@\w)"}}, std::string(300000, '.') + "@"),
      "the protected pattern '[\\w.]+@\\w' fails on a line of 300003 bytes: U_REGEX_TIME_OUT (make the "
      "pattern simpler or the line shorter)",
      Error);
}

TEST_CASE("a protected pattern that is no regular expression is a usage error that names it") {
  CHECK_THROWS_WITH_AS(
      MosesTokenizer({.protect = {"a(b"}}),
      "the protected pattern 'a(b' is no regular expression: U_REGEX_MISMATCHED_PAREN near character 3 "
      "(quote special characters with \\)",
      UsageError);
}
