#include "heed/text/strings/unicode.h"

#include <doctest/doctest.h>

#include <string>
#include <vector>

#include "heed/base/random.h"
#include "heed/base/utf8.h"

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
  join_words("a \tb \u00C2 \xC2 \xE2\x80  c\u2028 ", out);
  CHECK(out == "a b \u00C2 \xC2 \xE2\x80 c");
  CHECK(is_blank(" \u2028\t"));
  CHECK_FALSE(is_blank(" x"));
}

TEST_CASE("every code point that is white space parts words, and no other does") {
  std::string joined;
  for (char32_t c = 1; c < 0x3100; ++c)
    for (const std::size_t before : {1, 14, 15, 40})
      for (const std::size_t behind : {1, 30}) {
        const std::string end(behind, 'b');
        std::string text(before, 'a');
        append_utf8(text, c);
        text += end;
        join_words(text, joined);
        CAPTURE(static_cast<std::uint32_t>(c));
        REQUIRE(joined == (is_in(c, char_class::space) ? std::string(before, 'a') + ' ' + end : text));
      }
}

TEST_CASE("words of texts of any length are joined as code point after code point says") {
  const std::vector<std::string> parts = {"a",      "bc", "\u00E9", "\u00AB",   "\u2019",
                                          " ",      " ",  "  ",     "\u00A0",   "\u2009",
                                          "\u3000", "\t", "\xC2",   "\xE2\x80", "longer-than-sixteen-bytes"};
  std::string joined;
  for (std::uint64_t seed = 0; seed < 3000; ++seed) {
    const RandomStream random(seed, RandomUse::sampling);
    std::string text, expected;
    for (std::uint64_t i = random.below(40, 0); i > 0; --i) text += parts[random.below(parts.size(), i)];
    for (std::size_t at = 0; at < text.size();) {
      const std::size_t start = at;
      const bool space = is_in(decode_utf8(text, at), char_class::space);
      const bool gap = expected.ends_with(' ');
      if (!space) expected += text.substr(start, at - start);
      if (space && !gap && !expected.empty()) expected += ' ';
    }
    if (expected.ends_with(' ')) expected.pop_back();
    join_words(text, joined);
    CAPTURE(seed);
    CHECK(joined == expected);
  }
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

TEST_CASE("long runs of combining marks in the wrong order take time in proportion to their length") {
  // Marks above (class 230) and below (220), one that is two marks, a nukta (7), and a half-width sign that is a mark
  // (8) in NFKC only.
  const auto repeat = [](const std::string& text, int times) {
    std::string out;
    for (int i = 0; i < times; ++i) out += text;
    return out;
  };
  for (const int count : {1, 7, 50, 300}) {
    CAPTURE(count);
    const std::string below = repeat("\u0316", count), above = repeat("\u0308\u0301", count);
    const std::string start = repeat("b ", 40), end = repeat("\u00E9 x", 90);
    // The letter a takes the first mark of each class with which it has a composed form: U+0301 makes it U+00E1.
    CHECK(to_nfc(start + "a" + repeat("\u0301\u0316", count) + end) ==
          start + "\u00E1" + below + repeat("\u0301", count - 1) + end);
    CHECK(to_nfkc(start + "a" + repeat("\u0344\u0316", count) + end) ==
          start + "\u00E4" + below + above.substr(2) + end);
    CHECK(to_nfc(start + "\u0995" + repeat("\u0301\u09BC\u0316", count) + end) ==
          start + "\u0995" + repeat("\u09BC", count) + below + repeat("\u0301", count) + end);
    CHECK(to_nfkc(start + "q" + repeat("\u0301\uFF9E", count)) ==
          start + "q" + repeat("\u3099", count) + repeat("\u0301", count));
    CHECK(to_nfc(start + "q" + repeat("\u0301\uFF9E", count)) == start + "q" + repeat("\u0301\uFF9E", count));
    // Ill-formed bytes stay, and end a run.
    const std::string sorted = below + repeat("\u0301", count);
    CHECK(to_nfc("q" + repeat("\u0301\u0316", count) + "\xCC" + repeat("\u0301\u0316", count) + "\x81") ==
          "q" + sorted + "\xCC" + sorted + "\x81");
  }
  const std::string many = repeat("\u0301\u0316", 1000000), sorted = repeat("\u0316", 1000000);
  CHECK(to_nfc("a" + many) == "\u00E1" + sorted + repeat("\u0301", 999999));
  CHECK(to_nfkc(many) == sorted + repeat("\u0301", 1000000));
  CHECK(to_nfc(repeat("\x81", 1000000)) == repeat("\x81", 1000000));
}
