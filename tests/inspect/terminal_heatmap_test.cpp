#include "heed/inspect/terminal_heatmap.h"

#include <doctest/doctest.h>

#include <sstream>

#include "heed/base/utf8.h"
#include "heed/inspect/color_map.h"

using namespace heed;

namespace {

AttentionMap head_of_layer(int head = 1) {
  return {.kind = "cross",
          .layer = 2,
          .head = head,
          .rows = {"va", "!"},
          .columns = {"go", ".", "</s>"},
          .weights = {0.8F, 0.15F, 0.05F, 0.F, 0.4F, 0.6F}};
}

}  // namespace

TEST_CASE("colours rise in lightness and are clamped") {
  const auto light = [](Rgb c) { return 3 * c.red + 6 * c.green + c.blue; };
  for (int i = 1; i <= 20; ++i)
    CHECK(light(color_of(static_cast<float>(i) / 20)) > light(color_of(static_cast<float>(i - 1) / 20)));
  CHECK(color_of(-3) == color_of(0));
  CHECK(color_of(7) == color_of(1));
  CHECK(palette_index(0) == 235);
  CHECK(palette_index(1) == 227);
  CHECK(scale_top(0.801F) == doctest::Approx(0.9));
  CHECK(scale_top(0.8F) == doctest::Approx(0.8));
  CHECK(scale_top(0) == doctest::Approx(0.1));
  CHECK(scale_top(1) == doctest::Approx(1.0));
}

TEST_CASE("one map in ASCII") {
  const AttentionMap map = head_of_layer();
  CHECK(terminal_heatmap({&map, 1}, {Shading::ascii, 80}) ==
        "cross attention, layer 2, head 1\n"
        "   + go\n"
        "   | + .\n"
        "   | | + </s>\n"
        "va @@::..\n"
        " !   ++##\n"
        "\n"
        "weight 0 [  ..::--==++**##%%@@] 0.8\n");
}

TEST_CASE("one map in blocks") {
  const AttentionMap map = head_of_layer();
  CHECK(terminal_heatmap({&map, 1}, {Shading::blocks, 80}) ==
        "cross attention, layer 2, head 1\n"
        "   ┌ go\n"
        "   │ ┌ .\n"
        "   │ │ ┌ </s>\n"
        "va ██░░░░\n"
        " !   ▓▓██\n"
        "\n"
        "weight 0 [  ░░▒▒▓▓██] 0.8\n");
}

TEST_CASE("colours: one escape where the colour changes, reset at the end of the line") {
  const AttentionMap map{.kind = "cross", .head = 1, .rows = {"a"}, .columns = {"x", "y", "z"}, .weights = {0, 0, 1}};
  CHECK(terminal_heatmap({&map, 1}, {Shading::palette, 80}).find("\na \x1b[48;5;235m    \x1b[48;5;227m  \x1b[0m\n") !=
        std::string::npos);
  const Rgb low = color_of(0), high = color_of(1);
  const auto escape = [](Rgb c) {
    return "\x1b[48;2;" + std::to_string(c.red) + ";" + std::to_string(c.green) + ";" + std::to_string(c.blue) + "m";
  };
  CHECK(terminal_heatmap({&map, 1}, {Shading::truecolor, 80})
            .find("\na " + escape(low) + "    " + escape(high) + "  \x1b[0m\n") != std::string::npos);
}

TEST_CASE("maps over two axes of numbers: numbers above some columns, and a scale below each map") {
  AttentionMap map{.kind = "gaussian",
                   .rows = {"0", "0.5"},
                   .columns = {"0.25", "1", "1.75", "2.5"},
                   .weights = {0.02F, 0.01F, 0, 0, 0, 0, 0.01F, 0.02F}};
  map.axes = NumberAxes{"a caption", "query x", "x of the pairs"};
  AttentionMap other = map;
  other.axes->caption = "another";
  for (float& weight : other.weights) weight *= 40;
  CHECK(terminal_heatmap(std::vector{map, other}, {Shading::ascii, 60}) ==
        "a caption\n"
        "rows: query x; columns: x of the pairs\n"
        "   0.25  2.5\n"
        "    |     |\n"
        "  0 @@++\n"
        "0.5     ++@@\n"
        "\n"
        "weight 0 [  ..::--==++**##%%@@] 0.02\n"
        "\n"
        "another\n"
        "rows: query x; columns: x of the pairs\n"
        "   0.25  2.5\n"
        "    |     |\n"
        "  0 @@++\n"
        "0.5     ++@@\n"
        "\n"
        "weight 0 [  ..::--==++**##%%@@] 0.8\n");
}

TEST_CASE("the end of a fine scale has one digit; a colour finds its place among 216") {
  const auto ends = [](std::vector<float> values, double low, double high) {
    const ColorScale scale = fine_scale(values);
    CHECK(scale.low == doctest::Approx(low));
    CHECK(scale.high == doctest::Approx(high));
  };
  ends({0.0123F, 0.001F}, 0, 0.02);
  ends({0.02F}, 0, 0.02);
  ends({0.97F}, 0, 1);
  ends({1}, 0, 1);
  ends({0}, 0, 0.1);
  ends({}, 0, 0.1);
  ends({-0.93F, 0.31F}, -1, 0.4);
  ends({-31.5F, -1}, -40, 0);
  CHECK(fine_scale(std::vector<float>{-1, 1}).place(0.5F) == doctest::Approx(0.75));
  CHECK(palette_index(Rgb{0, 0, 0}) == 16);
  CHECK(palette_index(Rgb{255, 255, 255}) == 231);
  CHECK(palette_index(Rgb{213, 94, 0}) == 16 + 36 * 4 + 6 * 1);
}

TEST_CASE("heads stand side by side where they fit, in even lines") {
  const std::vector maps{head_of_layer(1), head_of_layer(2), head_of_layer(3), head_of_layer(4)};
  CHECK(terminal_heatmap(maps, {Shading::ascii, 26}) ==
        "cross attention, layer 2\n"
        "   head 1  head 2\n"
        "       <       <\n"
        "       /       /\n"
        "   g   s   g   s\n"
        "   o . >   o . >\n"
        "va @@::..  @@::..\n"
        " !   ++##    ++##\n"
        "\n"
        "   head 3  head 4\n"
        "       <       <\n"
        "       /       /\n"
        "   g   s   g   s\n"
        "   o . >   o . >\n"
        "va @@::..  @@::..\n"
        " !   ++##    ++##\n"
        "\n"
        "0 [  ..::--==**##%%@@] 0.8\n");
}

TEST_CASE("heads of one token stand under their whole titles, which reach no further than the terminal") {
  std::vector<AttentionMap> maps;
  for (int head = 1; head <= 3; ++head)
    maps.push_back({.kind = "encoder", .head = head, .rows = {"a"}, .columns = {"a"}, .weights = {1}});
  CHECK(terminal_heatmap(maps, {Shading::ascii, 24}) ==
        "encoder attention, layer\n"
        "1\n"
        "  head 1  head 2  head 3\n"
        "  a       a       a\n"
        "a @@      @@      @@\n"
        "\n"
        "0 [  ..::==++**%%@@] 1.0\n");
  CHECK(terminal_heatmap(maps, {Shading::ascii, 23}).find("  head 1  head 2\n  a       a\n") != std::string::npos);
}

TEST_CASE("the numbers of a narrow map are shown, and those at the edges of the terminal") {
  AttentionMap map{.kind = "gaussian", .rows = {"1"}, .columns = {"-12.25"}, .weights = {1}};
  map.axes = NumberAxes{"a caption", "x", "y"};
  CHECK(terminal_heatmap({&map, 1}, {Shading::ascii, 40})
            .starts_with("a caption\nrows: x; columns: y\n-12.25\n  |\n1 @@\n"));
  map.columns = {"1", "2", "3"};
  map.weights = {1, 0, 0};
  CHECK(terminal_heatmap({&map, 1}, {Shading::ascii, 40}).find("\n  1 2 3\n  | | |\n1 @@\n") != std::string::npos);
  map.rows = {"1000"};
  map.columns = {"100000"};
  map.weights = {1};
  CHECK(terminal_heatmap({&map, 1}, {Shading::ascii, 8})
            .starts_with("a\ncaption\nrows: x;\ncolumns:\ny\n  100000\n     |\n1000 @@\n"));
}

TEST_CASE("in ASCII, marks of tokens are ASCII, too") {
  const AttentionMap map{.kind = "cross",
                         .layer = 1,
                         .head = 1,
                         .rows = {"\u2581le"},
                         .columns = {"\u2581the", " ", "\t"},
                         .weights = {1, 0, 0}};
  const std::string drawn = terminal_heatmap({&map, 1}, {Shading::ascii, 80});
  CHECK_MESSAGE(drawn.starts_with("cross attention, layer 1, head 1\n"
                                  "    + _the\n"
                                  "    | + _\n"
                                  "    | | + ?\n"
                                  "_le @@\n"),
                drawn);
  CHECK(terminal_heatmap({&map, 1}, {Shading::blocks, 80}).find("\u2581le ██\n") != std::string::npos);
}

TEST_CASE("a map wider than the terminal is cut into blocks of columns, with captions on several lines") {
  const AttentionMap map = head_of_layer();
  CHECK(terminal_heatmap({&map, 1}, {Shading::ascii, 8}) ==
        "cross\n"
        "attenti~\n"
        "layer 2,\n"
        "head 1\n"
        "(columns\n"
        "1-2 of\n"
        "3)\n"
        "   + go\n"
        "   | + .\n"
        "va @@::\n"
        " !   ++\n"
        "\n"
        "cross\n"
        "attenti~\n"
        "layer 2,\n"
        "head 1\n"
        "(columns\n"
        "3-3 of\n"
        "3)\n"
        "   <\n"
        "   /\n"
        "   s\n"
        "   >\n"
        "va ..\n"
        " ! ##\n"
        "\n"
        "0 [  --##] 0.8\n");
}

TEST_CASE("wide characters keep the cells aligned") {
  const AttentionMap map{
      .kind = "cross", .layer = 1, .head = 1, .rows = {"天気", "a"}, .columns = {"今", "x"}, .weights = {1, 0, 0, 1}};
  CHECK(terminal_heatmap({&map, 1}, {Shading::blocks, 80}) ==
        "cross attention, layer 1, head 1\n"
        "     ┌ 今\n"
        "     │ ┌ x\n"
        "天気 ██\n"
        "   a   ██\n"
        "\n"
        "weight 0 [  ░░▒▒▓▓██] 1.0\n");
}

TEST_CASE("nothing to draw") {
  CHECK(terminal_heatmap({}, {}).empty());
  const AttentionMap empty{.kind = "cross", .layer = 1, .head = 1};
  CHECK(terminal_heatmap({&empty, 1}, {Shading::ascii, 80}) ==
        "cross attention, layer 1, head 1\n\nweight 0 [  ..::--==++**##%%@@] 0.1\n");
}

TEST_CASE("text is broken at its spaces") {
  using Lines = std::vector<std::string>;
  CHECK(wrap_width("cross attention, layer 2", 16) == Lines{"cross attention,", "layer 2"});
  CHECK(wrap_width("cross attention", 15) == Lines{"cross attention"});
  CHECK(wrap_width("attention, layer", 7, "~") == Lines{"attent~", "layer"});
  CHECK(wrap_width("", 7).empty());
}

TEST_CASE("captions and the scale fit a narrow terminal, in every shading") {
  AttentionMap map{.kind = "decoder", .layer = 12, .head = 16};
  for (int i = 0; i < 30; ++i) {
    map.columns.push_back("word" + std::to_string(i));
    map.weights.push_back(0.03F);
  }
  map.rows = {"word"};
  for (const Shading shading : {Shading::ascii, Shading::blocks, Shading::palette, Shading::truecolor}) {
    const std::string picture = terminal_heatmap({&map, 1}, {shading, 20});
    CHECK(picture.find("of 30)") != std::string::npos);
    std::istringstream lines(picture);
    for (std::string line; std::getline(lines, line);) {
      for (std::size_t at; (at = line.find('\x1b')) != std::string::npos;) line.erase(at, line.find('m', at) + 1 - at);
      CAPTURE(line);
      CHECK(display_width(line) <= 20);
    }
  }
}
