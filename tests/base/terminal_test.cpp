#include "heed/base/terminal.h"

#include <doctest/doctest.h>

using namespace heed;

TEST_CASE("shading follows the choice, the terminal and its variables") {
  const auto automatic = ColorChoice::automatic;
  CHECK(choose_shading(automatic, false, {true, "truecolor", "xterm", ""}) == Shading::truecolor);
  CHECK(choose_shading(automatic, false, {true, "24bit", "screen", ""}) == Shading::truecolor);
  CHECK(choose_shading(automatic, false, {true, "", "xterm-direct", ""}) == Shading::truecolor);
  CHECK(choose_shading(automatic, false, {true, "", "xterm-256color", ""}) == Shading::palette);
  CHECK(choose_shading(automatic, false, {true, "", "vt100", ""}) == Shading::blocks);
  CHECK(choose_shading(automatic, false, {true, "", "dumb", ""}) == Shading::ascii);
  CHECK(choose_shading(automatic, false, {true, "truecolor", "xterm", "1"}) == Shading::blocks);
  CHECK(choose_shading(automatic, false, {false, "truecolor", "xterm", ""}) == Shading::blocks);
  CHECK(choose_shading(ColorChoice::never, false, {true, "truecolor", "xterm", ""}) == Shading::blocks);
  CHECK(choose_shading(ColorChoice::always, false, {false, "truecolor", "", "1"}) == Shading::truecolor);
  CHECK(choose_shading(ColorChoice::always, false, {false, "", "", ""}) == Shading::palette);
  CHECK(choose_shading(ColorChoice::always, true, {true, "truecolor", "xterm", ""}) == Shading::ascii);
}

TEST_CASE("no token can steer the terminal") {
  CHECK(visible_token("\x1b[31m") == "␛[31m");
  CHECK(visible_token(std::string("\t\0\x7f", 3)) == "␉␀␡");
  CHECK(visible_token("\u009b1m") == "\uFFFD1m");
  CHECK(visible_token("a\u202Eb") == "a\uFFFDb");
  CHECK(visible_token(" ") == "␣");
  CHECK(visible_token("né天") == "né天");
}

TEST_CASE("with ASCII, marks and characters that stand for others are ASCII, but letters stay") {
  CHECK(visible_token("\u2581né\u2581", true) == "_né_");
  CHECK(visible_token("\u2581né") == "\u2581né");
  CHECK(visible_token("a b\t\x1b\u202E\uFFFD", true) == "a_b????");
  CHECK(visible_text("a b\t\u2581", true) == "a b?_");
}

TEST_CASE("padding counts terminal columns") {
  CHECK(pad_left("ab", 4) == "  ab");
  CHECK(pad_left("天", 4) == "  天");
  CHECK(pad_left("abcde", 4) == "abcde");
}

TEST_CASE("clusters and cutting respect marks and wide characters") {
  CHECK(text_clusters("e\u0301a天") == std::vector<std::string>{"e\u0301", "a", "天"});
  CHECK(text_clusters("\u1112\u1161\u11AB\u1100\u1173") ==
        std::vector<std::string>{"\u1112\u1161\u11AB", "\u1100\u1173"});
  CHECK(fit_width("outside", 7) == "outside");
  CHECK(fit_width("outside", 5) == "outs…");
  CHECK(fit_width("今日は天気", 5) == "今日…");
  CHECK(fit_width("outside", 3, "~") == "ou~");
}
