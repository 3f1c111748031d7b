#include "heed/text/moses/punctuation.h"

#include <doctest/doctest.h>

using namespace heed;

namespace {

std::string normalised(std::string line, std::string_view language = "en") {
  normalize_punctuation(line, language);
  return line;
}

}  // namespace

TEST_CASE("brackets, percent signs and colons lose their inner spaces") {
  CHECK(normalised("a( b )c (d) . 5 % e : f ;g") == "a (b) c (d). 5% e: f;g");
  CHECK(normalised("a  b\r") == "a b");
}

TEST_CASE("quotes and dashes become plain") {
  CHECK(normalised("\u201Ea\u201C \u2013 b\u2014c \u2026") == "\"a\" - b - c ...");
  CHECK(normalised("`a' ''b''") == "'a' \" b \" ");
  CHECK(normalised("\u00ABa\u00BB \u00AB\u00A0b\u00A0\u00BB\u00A0!") == "\"a\" \"b\" !");
}

TEST_CASE("a curly apostrophe is one between ASCII letters only, and a match takes the letter behind it") {
  CHECK(normalised("don\u2019t \u00E9\u2019t 5\u2019") == "don't \u00E9\"t 5\"");
  CHECK(normalised("a\u2019b\u2019c") == "a'b\"c");
  CHECK(normalised("a\u2018b \u2018c") == "a'b 'c");
}

TEST_CASE("quotation marks and full stops change places by language") {
  CHECK(normalised("\"a\", \"b\"...") == "\"a,\" \"b...\"");
  CHECK(normalised("\"a,\" \"b.\" c", "de") == "\"a\", \"b\". c");
  CHECK(normalised("\"a.\"", "de") == "\"a\".");
  CHECK(normalised("a.\"<b", "fr") == "a.\"<b");
  CHECK(normalised("a.\" <b", "fr") == "a\". <b");
  CHECK(normalised("a.\".\"b", "fr") == "a\"..\"b");
  CHECK(normalised("\"a,\" b.\" c", "cs") == "\"a,\" b.\" c");
}

TEST_CASE("no-break spaces") {
  CHECK(normalised("1\u00A0000\u00A0000 5\u00A0% a\u00A0: b,\u00A0c") == "1.000.000 5% a: b, c");
  CHECK(normalised("1\u00A0000", "fr") == "1,000");
  CHECK(normalised("1\u00A02\u00A03", "fr") == "1,2\u00A03");
  CHECK(normalised("20\u00A0\u00BAC n\u00BA\u00A05 5\u00A0cm") == "20 \u00BAC n\u00BA 5 5 cm");
}

TEST_CASE("bytes that are not UTF-8 pass") {
  CHECK(normalised("a\xFF (b") == "a\xFF (b");
}

TEST_CASE("full-width punctuation") {
  std::string line = "\uFF08\uFF11\uFF0C\u3002  \u300Ca\u300D\uFF0E";
  replace_unicode_punctuation(line);
  CHECK(line == "(1,. \"a\". ");
}

TEST_CASE("what does not print becomes spaces") {
  std::string line = "a\tb\u200Bc\uE000\x7F";
  remove_nonprinting(line);
  CHECK(line == "a b c  ");
}
