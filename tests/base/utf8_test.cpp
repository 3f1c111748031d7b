#include "heed/base/utf8.h"

#include <doctest/doctest.h>

using namespace heed;

TEST_CASE("utf-8 decodes what it encodes, over the whole range") {
  for (char32_t c = 1; c <= 0x10FFFF; c += c < 0x3000 ? 1 : 257) {
    if (c >= 0xD800 && c <= 0xDFFF) continue;
    std::string text;
    append_utf8(text, c);
    std::size_t at = 0;
    bool valid = true;
    REQUIRE(decode_utf8(text, at, &valid) == c);
    REQUIRE(at == text.size());
    REQUIRE(valid);
    REQUIRE(find_invalid_utf8(text) == std::string_view::npos);
  }
}

TEST_CASE("each maximal ill-formed part becomes one replacement character") {
  // The examples are those of Unicode 15, table 3-8, and of the tables next to it.
  const auto repair = [](std::string_view text) { return replace_invalid_utf8(text); };
  const std::string fffd = "\xEF\xBF\xBD";
  CHECK(repair("a\xF1\x80\x80\xE1\x80\xC2z") == "a" + fffd + fffd + fffd + "z");
  CHECK(repair("\xC0\xAF") == fffd + fffd);
  CHECK(repair("\xED\xA0\x80") == fffd + fffd + fffd);
  CHECK(repair("\xF4\x90\x80\x80") == fffd + fffd + fffd + fffd);
  CHECK(repair("\xE2\x82") == fffd);
  CHECK(repair("na\xC3\xAFve") == "na\xC3\xAFve");
  CHECK(find_invalid_utf8("0123456789\xFF") == 10);
}

TEST_CASE("an invalid byte is found wherever it stands") {
  for (std::size_t size = 1; size <= 70; ++size)
    for (std::size_t bad = 0; bad < size; ++bad)
      for (const std::size_t valid : {std::size_t{0}, bad / 2}) {
        std::string text(size, 'a');
        text[bad] = '\xFF';
        if (valid + 2 <= bad) text.replace(valid, 2, "\u00E9");
        CAPTURE(size);
        CAPTURE(bad);
        CAPTURE(valid);
        CHECK(find_invalid_utf8(text) == bad);
        text[bad] = 'b';
        CHECK(find_invalid_utf8(text) == std::string_view::npos);
      }
}

TEST_CASE("display width counts terminal columns") {
  CHECK(display_width("abc") == 3);
  CHECK(display_width("e\xCC\x81") == 1);
  CHECK(display_width("\xE4\xB8\xAD") == 2);
  // Korean in composed and in decomposed form; a mark that is written before the digits that it belongs to.
  CHECK(display_width("\uD55C\uAE00") == 4);
  CHECK(display_width("\u1112\u1161\u11AB\u1100\u1173\u11AF") == 4);
  CHECK(display_width("\u0600\u0661") == 2);
  CHECK(display_width("a\u200Db") == 2);
}
