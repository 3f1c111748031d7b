#include "heed/text/unicode.h"

#include <doctest/doctest.h>

using namespace heed;

TEST_CASE("classes of code points are Perl's") {
  CHECK(is_in(U'a', char_class::alphanumeric));
  CHECK(is_in(U'7', char_class::alphanumeric));
  CHECK_FALSE(is_in(U'7', char_class::alphabetic));
  CHECK_FALSE(is_in(U'_', char_class::alphanumeric));
  CHECK(is_in(U'\u00BD', char_class::number));
  CHECK_FALSE(is_in(U'\u00BD', char_class::alphanumeric));
  CHECK(is_in(U'\u00AA', char_class::lowercase));
  CHECK_FALSE(is_in(U'\u00AA', char_class::lowercase_letter));
  CHECK_FALSE(is_in(U'\u0301', char_class::alphanumeric));
  CHECK(is_in(U'\u20AC', char_class::currency));
  CHECK(is_in(U'$', char_class::punctuation));
  CHECK_FALSE(is_in(U'\u20AC', char_class::punctuation));
  CHECK(is_in(U'\u0085', char_class::space));
  CHECK_FALSE(is_in(U'\u200B', char_class::space));
  CHECK(is_in(U'\u200B', char_class::other));
  CHECK(is_in(U'\u0007', char_class::other));
}

TEST_CASE("code points newer than Unicode 14 count as unassigned") {
  CHECK(is_in(char32_t{0x31350}, char_class::other));
  CHECK_FALSE(is_in(char32_t{0x31350}, char_class::alphabetic));
  CHECK(is_in(char32_t{0x30000}, char_class::alphabetic));
  CHECK(is_in(char32_t{0x110000}, char_class::other));
}

TEST_CASE("words are joined by single spaces") {
  std::string out;
  join_words(" a\t\u00A0 b\u3000c\x01 ", out);
  CHECK(out == "a b c\x01");
  join_words(" \t ", out);
  CHECK(out.empty());
  CHECK(is_blank(" \u2028\t"));
  CHECK_FALSE(is_blank(" x"));
}

TEST_CASE("lower-casing in Python's and Perl's way") {
  CHECK(to_lower("ABC xyz") == "abc xyz");
  CHECK(to_lower("\u039F\u0394\u039F\u03A3 \u03A3") == "\u03BF\u03B4\u03BF\u03C2 \u03C3");
  CHECK(to_lower_perl("\u039F\u0394\u039F\u03A3 \u03A3") == "\u03BF\u03B4\u03BF\u03C3 \u03C3");
  CHECK(to_lower("\u0130X") == "i\u0307x");
  CHECK(to_lower_perl("\u0130X\u00C9") == "i\u0307x\u00E9");
  CHECK(to_upper(U'\u00DF') == "SS");
  CHECK(to_upper(U'\u00E9') == "\u00C9");
}

TEST_CASE("normalisation forms") {
  CHECK(to_nfc("e\u0301 \uFB01") == "\u00E9 \uFB01");
  CHECK(to_nfkc("e\u0301 \uFB01") == "\u00E9 fi");
}
