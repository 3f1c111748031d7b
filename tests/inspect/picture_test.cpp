#include <doctest/doctest.h>

#include <cstring>
#include <vector>

#include "heed/base/error.h"
#include "heed/inspect/attention_picture.h"
#include "heed/inspect/png_canvas.h"
#include "heed/inspect/svg_canvas.h"
#include "inspect/count.h"

using namespace heed;

namespace {

std::vector<AttentionSection> two_sections() {
  const AttentionMap map{.kind = "cross",
                         .layer = 1,
                         .head = 2,
                         .rows = {"va", "</s>"},
                         .columns = {"a<b", "今日", "\x1b&"},
                         .weights = {0.5F, 0.25F, 0.25F, 0.F, 0.125F, 0.875F}};
  return {{"line 1", {map, map}}, {"", {map}}};
}

/// Returns the width and the height that a PNG file's first chunk names.
std::pair<unsigned, unsigned> png_size(const std::string& png) {
  const auto number = [&](std::size_t at) {
    unsigned value = 0;
    for (std::size_t i = 0; i < 4; ++i) value = value << 8 | static_cast<unsigned char>(png[at + i]);
    return value;
  };
  return {number(16), number(20)};
}

}  // namespace

TEST_CASE("XML escaping") {
  CHECK(xml_escape("<a href=\"x\">&'") == "&lt;a href=&quot;x&quot;&gt;&amp;'");
  CHECK(xml_escape(std::string_view("\0\x1b\t", 3)) == "\uFFFD\uFFFD\t");
  CHECK(xml_escape("\uFFFE天") == "\uFFFD天");
}

TEST_CASE("SVG elements") {
  SvgCanvas canvas(40, 30.5, "a & b");
  canvas.rectangle({1.234, 2}, 3, 4, {255, 0, 16}, "x < y");
  canvas.rectangle({0, 0}, 1, 1, {});
  const std::vector<Point> points{{0, 0.5}, {-1, 2}};
  canvas.line(points, {0, 0, 255}, 1.5);
  canvas.dot({5, 6}, 2, {1, 2, 3});
  canvas.text({7, 8}, "t<", {.size = 10, .anchor = Anchor::end, .rotate = -45, .color = {0, 0, 0}, .bold = true});
  const std::string svg = canvas.take();
  CHECK(
      svg.starts_with("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<svg xmlns=\"http://www.w3.org/2000/svg\" "
                      "width=\"40\" height=\"30.5\" viewBox=\"0 0 40 30.5\""));
  CHECK(count(svg, "<title>a &amp; b</title>") == 1);
  CHECK(count(svg,
              "<rect x=\"1.23\" y=\"2\" width=\"3\" height=\"4\" fill=\"#ff0010\"><title>x &lt; y</title></rect>\n") ==
        1);
  CHECK(count(svg, "<rect x=\"0\" y=\"0\" width=\"1\" height=\"1\" fill=\"#000000\"/>\n") == 1);
  CHECK(count(svg,
              "<polyline points=\"0,0.5 -1,2\" fill=\"none\" stroke-linejoin=\"round\" stroke=\"#0000ff\" "
              "stroke-width=\"1.5\"/>\n") == 1);
  CHECK(count(svg, "<circle cx=\"5\" cy=\"6\" r=\"2\" fill=\"#010203\"/>\n") == 1);
  CHECK(count(svg,
              "<text x=\"7\" y=\"8\" font-size=\"10\" fill=\"#000000\" text-anchor=\"end\" font-weight=\"bold\" "
              "transform=\"rotate(-45 7 8)\">t&lt;</text>\n") == 1);
  CHECK(svg.ends_with("</svg>\n"));
}

TEST_CASE("attention as SVG: every cell says what it is") {
  const std::string svg = attention_svg(two_sections());
  CHECK(count(svg, "<title>va → a&lt;b: 0.500</title>") == 3);
  CHECK(count(svg, "<title>&lt;/s&gt; → ␛&amp;: 0.875</title>") == 3);
  CHECK(count(svg, ">cross attention, layer 1, head 2</text>") == 3);
  CHECK(count(svg, ">line 1</text>") == 1);
  CHECK(count(svg, ">0.9</text>") == 1);  // the upper end of the scale
  CHECK(count(svg, "NaN") == 0);
  CHECK(count(svg, "inf") == 0);
}

TEST_CASE("attention as PNG has the SVG's size, twice as fine") {
  const std::string png = attention_png(two_sections());
  REQUIRE(png.size() > 100);
  CHECK(std::memcmp(png.data(), "\x89PNG\r\n\x1a\n", 8) == 0);
  const auto [width, height] = png_size(png);
  const std::string svg = attention_svg(two_sections());
  CHECK(std::abs(std::stod(svg.substr(svg.find("width=\"") + 7)) * 2 - width) <= 1);
  CHECK(std::abs(std::stod(svg.substr(svg.find("height=\"") + 8)) * 2 - height) <= 1);
}

TEST_CASE("PNG: what is no character is drawn as U+FFFD") {
  const auto drawn = [](std::string_view text) {
    PngCanvas canvas(60, 20);
    canvas.text({2, 15}, text, {.size = 10});
    return canvas.take();
  };
  const std::string replaced = drawn("a\uFFFDz");
  CHECK(replaced != drawn("az"));
  for (const std::string_view text :
       {"a\uFFFEz", "a\uFFFFz", "a\uFDD0z", "a\uFDEFz", "a\U0001FFFEz", "a\U0010FFFFz", "a\xFFz"}) {
    CAPTURE(text);
    CHECK(drawn(text) == replaced);
  }
  CHECK(drawn(std::string_view("a\0z", 3)) == replaced);
}

TEST_CASE("a map over two axes of numbers: small cells, some labels, names of the axes, a scale of its own") {
  AttentionMap map{.kind = "gaussian"};
  for (int i = 0; i < 50; ++i) {
    map.rows.push_back(std::to_string(100 + i));
    map.columns.push_back(std::to_string(200 + i));
  }
  map.weights.assign(2500, 0.0123F);
  map.axes = NumberAxes{"a caption", "queries", "keys"};
  AttentionMap other = map;
  other.weights.assign(2500, 0.4F);
  const std::string svg = attention_svg(std::vector<AttentionSection>{{"heading", {map, other}}});
  CHECK(count(svg, ">a caption</text>") == 2);
  CHECK(count(svg, ">queries</text>") == 2);
  CHECK(count(svg, ">keys</text>") == 2);
  CHECK(count(svg, "<title>149 → 249: 0.012</title>") == 1);
  CHECK(count(svg, ">100</text>") == 2);
  CHECK(count(svg, ">101</text>") == 0);
  CHECK(count(svg, ">105</text>") == 2);
  CHECK(count(svg, ">weight</text>") == 2);
  CHECK(count(svg, ">0.02</text>") == 1);
  CHECK(count(svg, ">0.4</text>") == 1);
  CHECK(attention_png(std::vector<AttentionSection>{{"", {map}}}).starts_with("\x89PNG"));
}

TEST_CASE("a picture without maps is a picture") {
  CHECK(attention_svg({}).ends_with("</svg>\n"));
  CHECK(attention_png({}).size() > 50);
}

TEST_CASE("a PNG too large to make is an error that says what to do") {
  CHECK_THROWS_WITH_AS(
      PngCanvas(20000, 10),
      "the PNG picture would have 40000 x 20 pixels (choose fewer lines, layers, heads or positions, or --format svg)",
      Error);
}

TEST_CASE("no text is wider than the room that is left for it") {
  // The text widths that DejaVu Sans needs.
  CHECK(text_width("WWWW", 10) >= 39.5);
  CHECK(text_width("WWWW", 10, true) >= 44.1);
  CHECK(text_width("mmmm@", 10) >= 48.9);
  CHECK(text_width("iiii", 10) < 12);
  CHECK(text_width("天気", 10) >= 20);
  CHECK(text_width("e\u0301", 10) == text_width("e", 10));
  AttentionMap map{.kind = "cross", .layer = 1, .head = 1, .rows = {"a"}, .columns = {"b"}, .weights = {1.F}};
  const std::string heading(60, 'W');
  const std::string svg = attention_svg(std::vector<AttentionSection>{{heading, {map}}});
  CHECK(std::stod(svg.substr(svg.find("width=\"") + 7)) >= 20 + 60 * 1.103 * 16);
}
